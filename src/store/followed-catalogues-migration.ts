/** Accounts whose catalogue and registrations are those of another service. */
export const followedCatalogues = `
create table followed_catalogues (
  account_id text primary key references accounts(id) on delete cascade,
  -- Base address of the other service.
  origin text not null,
  -- The first complete pass; null: there was none yet, and the account is its own.
  followed_since timestamptz,
  -- Passes are numbered as they begin; one that ends after a later one is not written.
  passes bigint not null default 0,
  written_pass bigint not null default 0,
  started_at timestamptz,
  succeeded_at timestamptz,
  failed_at timestamptz,
  -- Of the last pass, when it failed.
  error_code text,
  error text,
  warnings jsonb not null default '[]',
  -- Messaging services that it names and that nobody manages here: [{id, name}].
  unmanaged_brokers jsonb not null default '[]',
  -- Brokers whose messaging settings come from it.
  messaging_of text[] not null default '{}'
);
-- What is remembered of documents, so that they are read again only when they may be others.
create table followed_documents (
  account_id text not null references followed_catalogues(account_id) on delete cascade,
  event_api_id text not null,
  version text not null,
  listed_digest text not null,
  document_digest text not null,
  read_at timestamptz not null,
  -- Why it cannot be used.
  problem text,
  primary key (account_id, event_api_id, version)
);
`
