/**
 * The catalogue as the API shows it, one jsonb document per published product version.
 *
 * Triggers keep the documents, so that every writer does, an older program during a rolling update among them: each
 * change notes the products that it touches, and the end of the transaction computes each of them once. A later change
 * of a view notes all products again: `insert into product_documents_due (account_id, product_id) select …`.
 */
export const productDocuments = `
alter table product_versions
  add column created_by text not null default 'keymesh',
  add column changed_by text not null default 'keymesh';

-- Ordered as semver.org 2.0.0 says: numbers by length and digits, a release after its pre-releases.
create function semantic_version_key(version text) returns text[] language sql immutable strict parallel safe as $$
  select coalesce(
    (select array[
        lpad(length(parts[1])::text, 4, '0') || parts[1],
        lpad(length(parts[2])::text, 4, '0') || parts[2],
        lpad(length(parts[3])::text, 4, '0') || parts[3],
        case when parts[4] is null then '1' else '0' end
      ] || coalesce((
        select array_agg(
          case when id ~ '^[0-9]+$' then '0' || lpad(length(id)::text, 4, '0') || id else '1' || id end order by position)
        from regexp_split_to_table(parts[4], '[.]') with ordinality as ids(id, position)), '{}')
      from regexp_match(version, '^([0-9]+)[.]([0-9]+)[.]([0-9]+)(?:-([0-9A-Za-z.-]+))?(?:[+].*)?$') as parts
      where parts is not null),
    '{}') collate "C"
$$;

-- The parameters of all channels: [{name, allowed}], "allowed" left out when any text is allowed in one of them.
create function event_api_parameters(channels jsonb) returns jsonb language sql immutable strict parallel safe as $$
  select coalesce(jsonb_agg(jsonb_build_object('name', name)
    || case when unbounded then '{}' else jsonb_build_object('allowed', allowed) end order by name collate "C"), '[]')
  from (
    select found.part[1] as name, bool_or(allowed.value is null) as unbounded,
      jsonb_agg(distinct allowed.value) filter (where allowed.value is not null) as allowed
    from jsonb_array_elements(channels) channel
    cross join lateral regexp_matches(channel ->> 'name', '[{]([^{}]+)[}]', 'g') found(part)
    left join lateral jsonb_array_elements_text(channel -> 'parameterEnums' -> found.part[1]) allowed(value) on true
    group by found.part[1]) parameters
$$;
alter table event_apis add column parameters jsonb not null generated always as (event_api_parameters(channels)) stored;

-- Connected to a modelled event mesh, management and messaging settings complete.
create view usable_brokers as
select b.account_id, b.id, b.name, b.kind, b.messaging, b.management ->> 'msgVpnName' as msg_vpn_name,
  m.name as event_mesh_name, e.name as environment_name
from brokers b
join event_meshes m on m.account_id = b.account_id and m.id = b.event_mesh_id
join environments e on e.account_id = m.account_id and e.id = m.environment_id
where b.management is not null and b.management_password is not null
  and coalesce(b.messaging ->> 'host', '') <> ''
  and jsonb_array_length(coalesce(b.messaging -> 'protocols', '[]')) > 0;

create view gateway_documents as
select b.account_id, b.id, jsonb_build_object(
  'id', b.id,
  'solaceCloudMessagingServiceId', b.id,
  'vendorCloudMessagingServiceId', b.id,
  'brokerType', b.kind,
  'name', b.name,
  'environmentName', b.environment_name,
  'eventMeshName', b.event_mesh_name,
  'messagingServiceConnections', (
    select jsonb_agg(jsonb_build_object(
        'name', p.protocol,
        'url', case p.protocol
            when 'smf' then 'tcp' when 'smfc' then 'tcp' when 'smfs' then 'tcps'
            when 'mqtt' then 'tcp' when 'secure-mqtt' then 'ssl'
            when 'mqttws' then 'ws' when 'secure-mqttws' then 'wss'
            else p.protocol end
          || '://' || case when host.name like '%:%' and host.name not like '[%' then '[' || host.name || ']' else host.name end
          || ':' || p.port,
        'protocol', p.protocol,
        'protocolVersion', case
            when p.protocol like '%mqtt%' then '3.1.1' when p.protocol like 'http%' then '1.1'
            when p.protocol like 'amqp%' then '1.0' else '3.0' end,
        'bindings', jsonb_build_object('msgVpn', b.msg_vpn_name),
        'messagingServiceAuthentications', '[]'::jsonb
      ) order by position)
    from (select b.messaging ->> 'host' as name) host,
      rows from (jsonb_to_recordset(b.messaging -> 'protocols') as (protocol text, port integer))
        with ordinality as p(protocol, port, position))
) as document
from usable_brokers b;

-- Every rule of visibility but the state; 'none' stands for the application domain of a product that has none.
create view product_version_documents as
select v.account_id, v.product_id, v.version, v.state,
  p.shared and v.publicly_available and plan.list is not null and service.list is not null as presentable,
  jsonb_build_object(
    'id', p.id,
    'name', p.name,
    'displayName', v.display_name,
    'description', coalesce(nullif(v.description, ''), p.description),
    'version', v.version,
    'state', v.state,
    'applicationDomainId', coalesce(d.id, 'none'),
    'applicationDomainName', coalesce(d.name, ''),
    'approvalType', v.approval_type,
    'brokerType', 'solace',
    'createdTime', floor(extract(epoch from v.created_at) * 1000)::bigint,
    'updatedTime', floor(extract(epoch from greatest(v.updated_at, p.updated_at)) * 1000)::bigint,
    'createdBy', v.created_by,
    'changedBy', v.changed_by,
    'plans', coalesce(plan.list, '[]'),
    'apis', coalesce(api.list, '[]'),
    'apiParameters', coalesce(parameter.list, '[]'),
    'solaceMessagingServices', coalesce(service.list, '[]'),
    'vendorMessagingServices', coalesce(service.list, '[]'),
    'customAttributes', v.custom_attributes,
    'attributes', p.attributes
  ) as document
from product_versions v
join products p on p.account_id = v.account_id and p.id = v.product_id
left join application_domains d on d.account_id = p.account_id and d.id = p.application_domain_id
cross join lateral (
  select jsonb_agg(jsonb_build_object(
      'id', l.id, 'name', l.name,
      'solaceClassOfServicePolicy', policy.object, 'vendorClassOfServicePolicy', policy.object) order by l.position) as list
  from plans l
  cross join lateral (select jsonb_build_object('id', l.id) || l.class_of_service_policy as object) policy
  where l.account_id = v.account_id and l.product_id = v.product_id and l.version = v.version) plan
cross join lateral (
  select jsonb_agg(jsonb_build_object(
      'id', a.id, 'name', a.name, 'displayName', a.display_name, 'description', a.description,
      'version', a.version, 'customAttributes', a.custom_attributes) order by x.position) as list
  from product_version_event_apis x
  join event_apis a on a.account_id = x.account_id and a.id = x.event_api_id and a.version = x.event_api_version
  where x.account_id = v.account_id and x.product_id = v.product_id and x.version = v.version) api
cross join lateral (
  select jsonb_agg(jsonb_build_object(
      'id', b.id, 'messagingServiceId', b.id, 'messagingServiceName', b.name,
      'solaceCloudMessagingServiceId', b.id, 'vendorCloudMessagingServiceId', b.id,
      'supportedProtocols', jsonb_path_query_array(b.messaging, '$.protocols[*].protocol'),
      'environmentName', b.environment_name, 'eventMeshName', b.event_mesh_name) order by b.id collate "C") as list
  from product_version_brokers x
  join usable_brokers b on b.account_id = x.account_id and b.id = x.broker_id
  where x.account_id = v.account_id and x.product_id = v.product_id and x.version = v.version) service
cross join lateral (
  select jsonb_agg(
      jsonb_build_object('name', name, 'dataType', 'string')
      || case when unbounded then '{"parameterType": "unbounded"}'
        else jsonb_build_object('parameterType', 'enum', 'values', allowed) end
      order by name collate "C") as list
  from (
    select each.name, bool_or(allowed.value is null) as unbounded,
      jsonb_agg(distinct allowed.value) filter (where allowed.value is not null) as allowed
    from product_version_event_apis x
    join event_apis a on a.account_id = x.account_id and a.id = x.event_api_id and a.version = x.event_api_version
    cross join lateral jsonb_to_recordset(a.parameters) each(name text, allowed jsonb)
    left join lateral jsonb_array_elements_text(each.allowed) allowed(value) on true
    where x.account_id = v.account_id and x.product_id = v.product_id and x.version = v.version
    group by each.name) parameters) parameter;

-- RELEASED, DEPRECATED and RETIRED versions that are presentable.
create table product_documents (
  account_id text not null,
  product_id text not null,
  version text not null,
  state text not null,
  version_key text[] collate "C" not null,
  -- The newest RELEASED version: what lists and details show of the product.
  listed boolean not null,
  -- Of the document: its ETag.
  revision text not null,
  document jsonb not null,
  primary key (account_id, product_id, version)
);
create unique index product_documents_listed on product_documents (account_id, product_id collate "C") where listed;

-- Products that a running transaction has touched; empty between transactions.
create unlogged table product_documents_due (
  transaction_id xid8 not null default pg_current_xact_id(),
  account_id text not null,
  product_id text not null,
  primary key (transaction_id, account_id, product_id)
);

create function note_product_documents() returns trigger language plpgsql as $$
declare
  changed record;
begin
  if tg_op = 'DELETE' then changed := old; else changed := new; end if;
  -- A password sealed again is no news for the catalogue.
  if tg_table_name = 'brokers' and tg_op = 'UPDATE' then
    if (old.name, old.event_mesh_id, old.messaging, old.management is null, old.management_password is null)
      is not distinct from
      (new.name, new.event_mesh_id, new.messaging, new.management is null, new.management_password is null)
    then return null; end if;
  end if;
  case tg_table_name
    when 'products' then
      insert into product_documents_due (account_id, product_id) values (changed.account_id, changed.id)
      on conflict do nothing;
    when 'application_domains' then
      insert into product_documents_due (account_id, product_id)
      select p.account_id, p.id from products p
      where p.account_id = changed.account_id and p.application_domain_id = changed.id
      on conflict do nothing;
    when 'event_apis' then
      insert into product_documents_due (account_id, product_id)
      select distinct x.account_id, x.product_id from product_version_event_apis x
      where x.account_id = changed.account_id and x.event_api_id = changed.id and x.event_api_version = changed.version
      on conflict do nothing;
    when 'brokers' then
      insert into product_documents_due (account_id, product_id)
      select distinct x.account_id, x.product_id from product_version_brokers x
      where x.account_id = changed.account_id and x.broker_id = changed.id
      on conflict do nothing;
    when 'event_meshes' then
      insert into product_documents_due (account_id, product_id)
      select distinct x.account_id, x.product_id from brokers b
      join product_version_brokers x on x.account_id = b.account_id and x.broker_id = b.id
      where b.account_id = changed.account_id and b.event_mesh_id = changed.id
      on conflict do nothing;
    when 'environments' then
      insert into product_documents_due (account_id, product_id)
      select distinct x.account_id, x.product_id from event_meshes m
      join brokers b on b.account_id = m.account_id and b.event_mesh_id = m.id
      join product_version_brokers x on x.account_id = b.account_id and x.broker_id = b.id
      where m.account_id = changed.account_id and m.environment_id = changed.id
      on conflict do nothing;
    else
      insert into product_documents_due (account_id, product_id) values (changed.account_id, changed.product_id)
      on conflict do nothing;
  end case;
  return null;
end $$;

do $$
declare
  name text;
begin
  foreach name in array array['products', 'product_versions', 'plans', 'product_version_event_apis',
    'product_version_brokers', 'application_domains', 'event_apis', 'brokers', 'event_meshes', 'environments']
  loop
    execute format('create trigger note_product_documents after insert or update or delete on %I
      for each row execute function note_product_documents()', name);
  end loop;
end $$;

-- Compiling the query costs more than it saves.
create function refresh_product_documents() returns trigger language plpgsql set jit = off as $$
begin
  -- The first row computes all of the transaction.
  if not exists (select from product_documents_due
    where transaction_id = new.transaction_id and account_id = new.account_id and product_id = new.product_id)
  then return null; end if;
  -- Two transactions that change parts of one product take turns, so that the second one sees both parts.
  perform pg_advisory_xact_lock(hashtextextended('keymesh product documents ' || account_id, 0))
  from (select distinct account_id from product_documents_due
    where transaction_id = pg_current_xact_id() order by account_id) accounts;
  delete from product_documents d using product_documents_due q
  where q.transaction_id = pg_current_xact_id() and d.account_id = q.account_id and d.product_id = q.product_id;
  insert into product_documents (account_id, product_id, version, state, version_key, listed, revision, document)
  select account_id, product_id, version, state, version_key,
    state = 'RELEASED' and row_number() over (
      partition by account_id, product_id order by state = 'RELEASED' desc, version_key desc, version collate "C" desc) = 1,
    md5(document::text), document
  from (
    select d.*, semantic_version_key(d.version) as version_key
    from product_documents_due q
    join product_version_documents d on d.account_id = q.account_id and d.product_id = q.product_id
    where q.transaction_id = pg_current_xact_id()
      and d.presentable and d.state in ('RELEASED', 'DEPRECATED', 'RETIRED')) documents;
  delete from product_documents_due where transaction_id = pg_current_xact_id();
  return null;
end $$;

create constraint trigger refresh_product_documents after insert on product_documents_due
  deferrable initially deferred for each row execute function refresh_product_documents();

insert into product_documents_due (account_id, product_id) select account_id, id from products;
`
