import { followedCatalogues } from './followed-catalogues-migration.ts'
import { notifications } from './notifications-migration.ts'
import { productDocuments } from './product-documents-migration.ts'

/** One forward step of the schema. A breaking one stops older programs from starting. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
  readonly breaking?: boolean
}

const catalogue = `
create table accounts (
  id text primary key,
  name text not null unique,
  created_at timestamptz not null default now()
);
create table environments (
  account_id text not null references accounts(id),
  id text not null,
  name text not null,
  primary key (account_id, id)
);
create table event_meshes (
  account_id text not null references accounts(id),
  id text not null,
  environment_id text not null,
  name text not null,
  primary key (account_id, id),
  foreign key (account_id, environment_id) references environments(account_id, id)
);
create table brokers (
  account_id text not null references accounts(id),
  id text not null,
  event_mesh_id text,
  name text not null,
  kind text not null,
  management jsonb,
  -- A message VPN belongs to one account: the normalised management address and the VPN name.
  management_address text,
  management_password text,
  management_password_version integer not null default 0,
  messaging jsonb,
  policy jsonb not null,
  revision text not null,
  updated_at timestamptz not null default now(),
  primary key (account_id, id),
  unique (management_address),
  foreign key (account_id, event_mesh_id) references event_meshes(account_id, id)
);
create table application_domains (
  account_id text not null references accounts(id),
  id text not null,
  name text not null,
  description text not null,
  primary key (account_id, id)
);
create table event_apis (
  account_id text not null references accounts(id),
  id text not null,
  version text not null,
  name text not null,
  display_name text not null,
  description text not null,
  application_domain_id text,
  viewpoint text not null,
  document jsonb not null,
  channels jsonb not null,
  custom_attributes jsonb not null,
  revision text not null,
  updated_at timestamptz not null default now(),
  primary key (account_id, id, version),
  foreign key (account_id, application_domain_id) references application_domains(account_id, id)
);
create table products (
  account_id text not null references accounts(id),
  id text not null,
  name text not null,
  description text not null,
  application_domain_id text,
  shared boolean not null,
  attributes jsonb not null,
  revision text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (account_id, id),
  foreign key (account_id, application_domain_id) references application_domains(account_id, id)
);
create table product_versions (
  account_id text not null,
  product_id text not null,
  version text not null,
  display_name text not null,
  description text not null,
  state text not null,
  approval_type text not null,
  publicly_available boolean not null,
  custom_attributes jsonb not null,
  revision text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (account_id, product_id, version),
  foreign key (account_id, product_id) references products(account_id, id) on delete cascade
);
create table product_version_event_apis (
  account_id text not null,
  product_id text not null,
  version text not null,
  event_api_id text not null,
  event_api_version text not null,
  position integer not null,
  primary key (account_id, product_id, version, event_api_id, event_api_version),
  foreign key (account_id, product_id, version) references product_versions(account_id, product_id, version) on delete cascade,
  foreign key (account_id, event_api_id, event_api_version) references event_apis(account_id, id, version)
);
create table product_version_brokers (
  account_id text not null,
  product_id text not null,
  version text not null,
  broker_id text not null,
  primary key (account_id, product_id, version, broker_id),
  foreign key (account_id, product_id, version) references product_versions(account_id, product_id, version) on delete cascade,
  foreign key (account_id, broker_id) references brokers(account_id, id)
);
create index product_version_brokers_by_broker on product_version_brokers (account_id, broker_id);
create table plans (
  account_id text not null,
  product_id text not null,
  version text not null,
  id text not null,
  name text not null,
  class_of_service_policy jsonb not null,
  position integer not null,
  primary key (account_id, product_id, version, id),
  foreign key (account_id, product_id, version) references product_versions(account_id, product_id, version) on delete cascade
);
`

const registrations = `
create table registrations (
  account_id text not null references accounts(id),
  id text not null,
  name text not null,
  source text not null,
  source_owner text,
  application_domain_id text,
  filters jsonb not null,
  attributes jsonb not null,
  -- Grows with every change that may alter what should be on a broker.
  generation bigint not null default 1,
  revision text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  primary key (account_id, id)
);
create table access_requests (
  account_id text not null,
  registration_id text not null,
  id text not null,
  product_id text not null,
  product_version text not null,
  plan_id text not null,
  state text not null,
  -- Why the state is ERROR, for a person.
  reason text,
  filters jsonb not null,
  -- Makes queue names unguessable where every client of the message VPN may consume.
  queue_nonce text not null,
  approved_at timestamptz,
  expires_at timestamptz,
  expired_at timestamptz,
  revision text not null,
  created_at timestamptz not null default now(),
  primary key (account_id, registration_id, id),
  foreign key (account_id, registration_id) references registrations(account_id, id) on delete cascade
);
create index access_requests_by_product on access_requests (account_id, product_id, product_version);
create index access_requests_by_expiry on access_requests (expires_at) where expires_at is not null and expired_at is null;
create table credentials (
  account_id text not null,
  registration_id text not null,
  id text not null,
  name text not null,
  consumer_key text not null,
  -- Sealed: flattened JWE bound to this row, column and version.
  secret text not null,
  secret_version integer not null,
  revision text not null,
  issued_at timestamptz not null default now(),
  expires_at timestamptz,
  -- Expired, revoked or deleted: no longer wanted on any broker.
  retired_at timestamptz,
  primary key (account_id, id),
  foreign key (account_id, registration_id) references registrations(account_id, id) on delete cascade
);
create unique index credentials_by_consumer_key on credentials (account_id, consumer_key) where retired_at is null;
create index credentials_by_registration on credentials (account_id, registration_id);
create index credentials_by_expiry on credentials (expires_at) where expires_at is not null and retired_at is null;
`

const reconciliation = `
create table pairs (
  account_id text not null,
  registration_id text not null,
  broker_id text not null,
  -- A counted access request ties the registration to the broker.
  wanted boolean not null,
  generation bigint not null,
  reached_generation bigint not null default 0,
  state text not null default 'lagging',
  reason text,
  attempts integer not null default 0,
  -- Not before this time, whatever the generation says; null: as soon as possible when lagging.
  due_at timestamptz,
  withdrawal_confirmed boolean not null default false,
  lease_holder text,
  lease_token bigint not null default 0,
  lease_until timestamptz,
  reconciled_at timestamptz,
  changed_at timestamptz not null default now(),
  primary key (account_id, registration_id, broker_id),
  foreign key (account_id, registration_id) references registrations(account_id, id) on delete cascade,
  foreign key (account_id, broker_id) references brokers(account_id, id)
);
create index pairs_lagging on pairs (account_id, broker_id) where reached_generation < generation;
create index pairs_due on pairs (due_at) where due_at is not null;
create table ledger (
  account_id text not null,
  broker_id text not null,
  kind text not null,
  name text not null,
  -- Null: shared by all registrations of the message VPN.
  registration_id text,
  origin text not null,
  -- Attributes and members as last confirmed by the broker; null: intended, outcome unknown.
  applied jsonb,
  confirmed_credential_version integer,
  password_due boolean not null default false,
  withdrawn_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (account_id, broker_id, kind, name),
  foreign key (account_id, broker_id) references brokers(account_id, id)
);
create index ledger_by_registration on ledger (account_id, broker_id, registration_id);
create table adoptions (
  account_id text not null,
  broker_id text not null,
  kind text not null,
  name text not null,
  asked_by text not null,
  created_at timestamptz not null default now(),
  primary key (account_id, broker_id, kind, name),
  foreign key (account_id, broker_id) references brokers(account_id, id)
);
create table runs (
  id text primary key,
  account_id text not null,
  broker_id text not null,
  registration_id text,
  kind text not null,
  trigger text not null,
  outcome text not null,
  steps integer not null default 0,
  held integer not null default 0,
  drift integer not null default 0,
  conflicts integer not null default 0,
  detail jsonb not null default '{}',
  error_code text,
  error text,
  started_at timestamptz not null,
  finished_at timestamptz
);
create index runs_by_broker on runs (account_id, broker_id, started_at desc);
create index runs_by_age on runs (started_at);
create table drift (
  id bigint generated always as identity primary key,
  account_id text not null,
  broker_id text not null,
  registration_id text,
  object_kind text not null,
  object_name text not null,
  kind text not null,
  reason text not null,
  before jsonb not null,
  after jsonb not null,
  -- reported, repaired, held, failed
  action text not null,
  run_id text not null,
  repaired_by_run_id text,
  detected_at timestamptz not null,
  last_seen_at timestamptz not null,
  repaired_at timestamptz
);
create unique index drift_open on drift (account_id, broker_id, object_kind, object_name, kind) where repaired_at is null;
create index drift_open_by_registration on drift (account_id, broker_id, registration_id) where repaired_at is null;
create index drift_by_time on drift (account_id, detected_at desc);
create table broker_status (
  account_id text not null,
  broker_id text not null,
  reachable boolean,
  checked_at timestamptz,
  error_code text,
  error text,
  semp_version text,
  sweep_run_id text,
  sweep_started_at timestamptz,
  sweep_finished_at timestamptz,
  sweep_outcome text,
  sweep_progress jsonb,
  paused boolean not null default false,
  primary key (account_id, broker_id),
  foreign key (account_id, broker_id) references brokers(account_id, id) on delete cascade
);
create table schedule_ticks (
  schedule text primary key,
  last_tick_at timestamptz not null
);
`

const identity = `
create table users (
  id text primary key,
  name text not null,
  password_hash text not null,
  -- In every user token; raised when the tokens that are out must end.
  token_generation integer not null default 1,
  created_at timestamptz not null default now()
);
create unique index users_by_name on users (lower(name));
create table memberships (
  user_id text not null references users(id) on delete cascade,
  account_id text not null references accounts(id),
  roles text[] not null,
  created_at timestamptz not null default now(),
  primary key (user_id, account_id)
);
create index memberships_by_account on memberships (account_id);
create table api_tokens (
  id text primary key,
  account_id text not null,
  user_id text not null,
  name text not null,
  -- SHA-256 of the token's 256 random bits, in hexadecimal.
  secret_hash text not null,
  permissions text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  foreign key (user_id, account_id) references memberships(user_id, account_id) on delete cascade
);
create index api_tokens_by_member on api_tokens (account_id, user_id);
create table sign_in_attempts (
  -- A digest of what is counted: an address, a user name, or both together.
  subject text primary key,
  attempts integer not null,
  window_ends_at timestamptz not null
);
create index sign_in_attempts_by_end on sign_in_attempts (window_ends_at);
create table audit (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  -- Null: before an account was chosen.
  account_id text,
  -- user, apiToken, host
  actor_kind text not null,
  actor_id text,
  actor_name text not null,
  action text not null,
  subject text not null,
  -- done, refused, failed
  outcome text not null,
  request_id text,
  address text
);
create index audit_by_account on audit (account_id, id desc);
create index audit_by_age on audit (at);
`

const pauses = `
create table pauses (
  account_id text not null references accounts(id),
  -- account: everything, the id is empty; registration. A broker's pause is in broker_status.
  scope text not null,
  id text not null,
  paused_by text not null,
  paused_at timestamptz not null default now(),
  primary key (account_id, scope, id)
);
-- An operator accepts until then that the next run drops live clients.
alter table pairs add column disruptive_allowed_until timestamptz;
`

const webhooks = `
create table webhooks (
  account_id text not null,
  id text not null,
  registration_id text not null,
  name text not null,
  definition jsonb not null,
  -- Sealed: authentication and request headers, which may hold secrets too. Null: there are none.
  secrets text,
  secrets_version integer not null,
  created_at timestamptz not null default now(),
  primary key (account_id, id),
  unique (account_id, registration_id, name),
  foreign key (account_id, registration_id) references registrations(account_id, id) on delete cascade
);

-- A registration that comes back after its deletion has no webhooks, whoever deleted it.
create function forget_webhooks() returns trigger language plpgsql as $$
begin
  delete from webhooks where account_id = new.account_id and registration_id = new.id;
  return null;
end $$;
create trigger forget_webhooks after update of deleted_at on registrations
  for each row when (new.deleted_at is not null) execute function forget_webhooks();
`

const pairFailures = `
alter table pairs
  -- When the first of the failed runs in a row ended.
  add column failing_since timestamptz,
  -- The last run ended in what does not heal by itself: a conflict, a refused plan, an error that stops or lasts.
  add column needs_person boolean not null default false;
`

const logins = `
-- The last probe of a credential on a broker over one protocol.
create table login_verdicts (
  account_id text not null,
  broker_id text not null,
  registration_id text not null,
  consumer_key text not null,
  protocol text not null,
  credential_version integer not null,
  outcome text not null,
  -- Of a login that proved nothing.
  reason text,
  detail text not null,
  checked_at timestamptz not null,
  primary key (account_id, broker_id, consumer_key, protocol),
  foreign key (account_id, broker_id) references brokers(account_id, id) on delete cascade
);
create index login_verdicts_by_registration on login_verdicts (account_id, registration_id, broker_id);
-- What a deliberately wrong password came to, once in a period.
create table login_controls (
  account_id text not null,
  broker_id text not null,
  protocol text not null,
  outcome text not null,
  detail text not null,
  checked_at timestamptz not null,
  primary key (account_id, broker_id, protocol),
  foreign key (account_id, broker_id) references brokers(account_id, id) on delete cascade
);
-- Version whose confirmed password the broker refused, and whether it was written again for that.
alter table ledger add column refused_version integer;
alter table ledger add column reapplied boolean not null default false;
`

const brokerHealth = `
-- closed: takes work; open: rests until retry_at; half-open: one prober finds out, until prober_until.
alter table broker_status add column health text not null default 'closed';
alter table broker_status add column failures integer not null default 0;
alter table broker_status add column retry_at timestamptz;
alter table broker_status add column prober text;
alter table broker_status add column prober_until timestamptz;
`

const sweepMemory = `
-- A sweep found something else on the broker than it should be; until a run has looked at it.
alter table pairs add column suspected_at timestamptz;
create index pairs_suspected on pairs (account_id, broker_id, suspected_at) where suspected_at is not null;
-- Kinds that a sweep has read to their end, while it reads.
alter table broker_status add column sweep_checkpoint jsonb;
-- Where listings of members begin in the next sweep, from 0 to 1.
alter table broker_status add column listing_from double precision;
`

const declaredRegistrations = `
-- A portal file holds it, or held it: only then a prune may remove it.
alter table registrations add column declared boolean not null default false;
update registrations set declared = true where source = 'portal-file';
`

const lookalikes = `
-- Objects on the broker that look like ours and are not in the ledger, as the last sweep saw them.
alter table broker_status add column lookalikes jsonb;
`

const recordsByTime = `
-- Lists by time, newest first, and the counts of an hour or a day read one range of an index, whatever they are filtered by.
drop index drift_by_time;
create index drift_by_detection on drift (account_id, detected_at, id) include (broker_id, kind);
create index drift_by_repair on drift (account_id, repaired_at) include (broker_id, kind) where repaired_at is not null;
create index drift_by_broker on drift (account_id, broker_id, detected_at, id) include (kind);
create index drift_by_kind on drift (account_id, kind, detected_at, id);
create index drift_by_registration on drift (account_id, registration_id, detected_at, id);
create index drift_by_run on drift (run_id);
create index drift_by_repairing_run on drift (repaired_by_run_id) where repaired_by_run_id is not null;
create index runs_by_account on runs (account_id, started_at, id);
create index runs_by_registration on runs (account_id, registration_id, started_at, id);
-- What is rare among the many runs of registrations that end well.
create index runs_sweeps on runs (account_id, started_at, id) where kind = 'sweep';
create index runs_asked_for on runs (account_id, trigger, started_at, id) where trigger in ('operator', 'revocation');
create index runs_not_well on runs (account_id, outcome, started_at, id) where outcome not in ('in-sync', 'done');
create index product_versions_by_event_api on product_version_event_apis (account_id, event_api_id, event_api_version);
`

export const migrations: readonly Migration[] = [
  { version: 1, name: 'catalogue', sql: catalogue },
  { version: 2, name: 'registrations', sql: registrations },
  { version: 3, name: 'reconciliation', sql: reconciliation },
  { version: 4, name: 'identity', sql: identity },
  { version: 5, name: 'product documents', sql: productDocuments },
  { version: 6, name: 'pauses', sql: pauses },
  { version: 7, name: 'webhooks', sql: webhooks },
  { version: 8, name: 'pair failures', sql: pairFailures },
  { version: 9, name: 'logins', sql: logins },
  { version: 10, name: 'broker health', sql: brokerHealth },
  { version: 11, name: 'followed catalogues', sql: followedCatalogues },
  { version: 12, name: 'sweep memory', sql: sweepMemory },
  { version: 13, name: 'declared registrations', sql: declaredRegistrations },
  { version: 14, name: 'lookalikes', sql: lookalikes },
  { version: 15, name: 'records by time', sql: recordsByTime },
  { version: 16, name: 'notifications', sql: notifications },
]
