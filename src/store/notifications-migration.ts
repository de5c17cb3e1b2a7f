const driftSubject = `jsonb_build_object('driftId', d.id, 'brokerId', d.broker_id, 'registrationId', d.registration_id,
    'objectKind', d.object_kind, 'objectName', d.object_name, 'difference', d.kind, 'reason', d.reason,
    'action', d.action, 'runId', d.run_id)`

/**
 * The outbox of notifications. Triggers write a row for each endpoint that wants to know, in the transaction of the fact
 * itself, whoever writes it: nothing that is committed goes untold, and nothing that is rolled back is told.
 */
export const notifications = `
create table notification_endpoints (
  account_id text not null references accounts(id),
  id text not null,
  name text not null,
  kinds text[] not null,
  enabled boolean not null,
  -- Why it was switched off, when the receiver asked for it.
  disabled_reason text,
  -- The URL as it may be shown: without user, password and query.
  address text not null,
  -- Sealed: the whole URL and the signing secrets.
  secrets text not null,
  secrets_version integer not null,
  created_at timestamptz not null default now(),
  -- One digest in a minute: no other before this time.
  next_digest_at timestamptz,
  -- The receiver fails: nothing is sent before this time.
  blocked_until timestamptz,
  failing_since timestamptz,
  last_error text,
  last_delivered_at timestamptz,
  lease_holder text,
  lease_until timestamptz,
  primary key (account_id, id),
  unique (account_id, name)
);
create table notification_deliveries (
  account_id text not null,
  endpoint_id text not null,
  -- The same at every attempt: receivers know repetitions by it.
  id text primary key,
  state text not null,
  test boolean not null,
  notifications integer not null,
  body text not null,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null,
  give_up_at timestamptz not null,
  last_attempt_at timestamptz,
  last_status integer,
  last_error text,
  created_at timestamptz not null,
  finished_at timestamptz,
  foreign key (account_id, endpoint_id) references notification_endpoints(account_id, id) on delete cascade
);
create index notification_deliveries_pending on notification_deliveries (account_id, endpoint_id, created_at)
  where state = 'pending';
create index notification_deliveries_by_time on notification_deliveries (account_id, created_at desc);
create index notification_deliveries_by_age on notification_deliveries (finished_at);
create table notifications (
  id bigint generated always as identity primary key,
  account_id text not null,
  endpoint_id text not null,
  -- What it is about, so that nobody is told the same twice.
  fact text not null,
  kind text not null,
  subject jsonb not null,
  occurred_at timestamptz not null,
  -- Until then the fact may be found again.
  keep_until timestamptz,
  -- Null: waits for the next digest.
  delivery_id text,
  unique (account_id, endpoint_id, fact),
  foreign key (account_id, endpoint_id) references notification_endpoints(account_id, id) on delete cascade
);
create index notifications_waiting on notifications (account_id, endpoint_id, id) where delivery_id is null;
create index notifications_by_delivery on notifications (delivery_id) where delivery_id is not null;
create index notifications_by_age on notifications (occurred_at);

create function notify_operators(account text, notification_kind text, fact text, subject jsonb) returns void
language sql as $$
  insert into notifications (account_id, endpoint_id, fact, kind, subject, occurred_at)
  select account, e.id, fact, notification_kind, subject, clock_timestamp()
  from notification_endpoints e
  where e.account_id = account and e.enabled and notification_kind = any(e.kinds)
  on conflict do nothing
$$;

-- It will not be repaired by itself: it was only reported, is held, or its repair fails for good.
alter table drift add column unrepairable boolean not null default false;
create function judge_drift() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.unrepairable then
    new.unrepairable := true;
  else
    new.unrepairable := case new.action
      when 'repaired' then false
      when 'failed' then exists (select from pairs p
        where p.account_id = new.account_id and p.registration_id = new.registration_id
          and p.broker_id = new.broker_id and p.needs_person)
      else true end;
  end if;
  return new;
end $$;
create trigger judge_new_drift before insert on drift for each row execute function judge_drift();
create trigger judge_drift before update of action on drift for each row when (new.repaired_at is null)
  execute function judge_drift();

create function tell_new_drift() returns trigger language plpgsql as $$
begin
  insert into notifications (account_id, endpoint_id, fact, kind, subject, occurred_at)
  select d.account_id, e.id, k.kind || '/' || d.id, k.kind, ${driftSubject}, d.detected_at
  from added d
  cross join lateral (values ('drift.found', true), ('drift.unrepairable', d.unrepairable)) as k (kind, holds)
  join notification_endpoints e on e.account_id = d.account_id and e.enabled and k.kind = any(e.kinds)
  where k.holds order by d.id
  on conflict do nothing;
  return null;
end $$;
create trigger tell_new_drift after insert on drift referencing new table as added
  for each statement execute function tell_new_drift();
create function tell_changed_drift() returns trigger language plpgsql as $$
begin
  insert into notifications (account_id, endpoint_id, fact, kind, subject, occurred_at)
  select d.account_id, e.id, 'drift.unrepairable/' || d.id, 'drift.unrepairable', ${driftSubject}, d.last_seen_at
  from after_change d
  join before_change b on b.id = d.id and not b.unrepairable
  join notification_endpoints e on e.account_id = d.account_id and e.enabled and 'drift.unrepairable' = any(e.kinds)
  where d.unrepairable order by d.id
  on conflict do nothing;
  return null;
end $$;
create trigger tell_changed_drift after update on drift referencing old table as before_change new table as after_change
  for each statement execute function tell_changed_drift();

-- When it stopped taking work; null while it takes work.
alter table broker_status add column down_since timestamptz;
create function tell_broker_health() returns trigger language plpgsql as $$
declare
  broker_name text := (select name from brokers where account_id = new.account_id and id = new.broker_id);
begin
  if old.health = 'closed' then
    new.down_since := clock_timestamp();
    perform notify_operators(new.account_id, 'broker.down',
      'broker.down/' || new.broker_id || '/' || extract(epoch from new.down_since),
      jsonb_build_object('brokerId', new.broker_id, 'brokerName', broker_name,
        'errorCode', new.error_code, 'error', left(new.error, 500)));
  elsif new.health = 'closed' then
    perform notify_operators(new.account_id, 'broker.back',
      'broker.back/' || new.broker_id || '/' || extract(epoch from clock_timestamp()),
      jsonb_build_object('brokerId', new.broker_id, 'brokerName', broker_name,
        'downSinceMs', round(extract(epoch from old.down_since) * 1000)::bigint));
    new.down_since := null;
  end if;
  return new;
end $$;
create trigger tell_broker_health before update of health on broker_status for each row
  when ((old.health = 'closed') <> (new.health = 'closed')) execute function tell_broker_health();

create function tell_waiting_request() returns trigger language plpgsql as $$
begin
  perform notify_operators(new.account_id, 'access-request.waiting',
    'access-request.waiting/' || new.registration_id || '/' || new.id || '/' || extract(epoch from clock_timestamp()),
    jsonb_build_object('registrationId', new.registration_id, 'accessRequestId', new.id, 'productId', new.product_id,
      'productVersion', new.product_version, 'planId', new.plan_id));
  return null;
end $$;
create trigger tell_new_request after insert on access_requests for each row
  when (new.state = 'PENDING_APPROVAL') execute function tell_waiting_request();
create trigger tell_changed_request after update of state on access_requests for each row
  when (new.state = 'PENDING_APPROVAL' and old.state <> 'PENDING_APPROVAL') execute function tell_waiting_request();
`
