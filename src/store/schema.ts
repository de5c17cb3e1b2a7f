import type { ColumnType, Generated } from 'kysely'
import type {
  BrokerPolicy,
  Channel,
  ClassOfServicePolicy,
  ManagementSettings,
  MessagingSettings,
  ProductState,
  Protocol,
  Viewpoint,
} from '../domain/catalogue.ts'
import type { NotificationKind, SentKind } from '../domain/notifications.ts'
import type { Permission, UserRole } from '../domain/permissions.ts'
import type { AccessRequestState, Filters } from '../domain/registration.ts'

import type { NegativeControl, NotVerifiedReason, VerdictOutcome } from '../domain/verdict.ts'

/** Read as a value, written as JSON text: the driver would make a PostgreSQL array of a JavaScript one. */
export type Json<Value> = ColumnType<Value, string, string>
export type NullableJson<Value> = ColumnType<Value | null, string | null | undefined, string | null>
export type Timestamp = ColumnType<Date, Date, Date>
export type NullableTimestamp = ColumnType<Date | null, Date | null | undefined, Date | null>
/** Set by the database when left out. */
export type DefaultTimestamp = ColumnType<Date, Date | undefined, Date>

export interface NameValue {
  readonly name: string
  readonly value: string
}

export interface AccountsTable {
  id: string
  name: string
  created_at: DefaultTimestamp
}

export interface EnvironmentsTable {
  account_id: string
  id: string
  name: string
}

export interface EventMeshesTable {
  account_id: string
  id: string
  environment_id: string
  name: string
}

export interface BrokersTable {
  account_id: string
  id: string
  event_mesh_id: string | null
  name: string
  kind: 'solace'
  management: NullableJson<ManagementSettings>
  management_address: string | null
  /** Sealed. */
  management_password: string | null
  management_password_version: Generated<number>
  messaging: NullableJson<MessagingSettings>
  policy: Json<BrokerPolicy>
  revision: string
  updated_at: DefaultTimestamp
}

export interface ApplicationDomainsTable {
  account_id: string
  id: string
  name: string
  description: string
}

export interface EventApisTable {
  account_id: string
  id: string
  version: string
  name: string
  display_name: string
  description: string
  application_domain_id: string | null
  viewpoint: Viewpoint
  document: Json<StoredDocument>
  channels: Json<readonly Channel[]>
  custom_attributes: Json<readonly NameValue[]>
  revision: string
  updated_at: DefaultTimestamp
}

/** An AsyncAPI document, self-contained. */
export interface StoredDocument {
  /** `2.0.0` to `2.6.0`. */
  readonly asyncApiVersion: string
  readonly title: string
  readonly json: unknown
}

export interface ProductsTable {
  account_id: string
  id: string
  name: string
  description: string
  application_domain_id: string | null
  shared: boolean
  attributes: Json<readonly NameValue[]>
  revision: string
  created_at: DefaultTimestamp
  updated_at: DefaultTimestamp
}

export interface ProductVersionsTable {
  account_id: string
  product_id: string
  version: string
  display_name: string
  description: string
  state: ProductState
  approval_type: 'automatic' | 'manual'
  publicly_available: boolean
  custom_attributes: Json<readonly NameValue[]>
  revision: string
  created_at: DefaultTimestamp
  updated_at: DefaultTimestamp
  /** A user id, at least four characters long. */
  created_by: Generated<string>
  changed_by: Generated<string>
}

/** Published versions as the API shows them, kept by triggers; read-only for the program. */
export interface ProductDocumentsTable {
  account_id: ColumnType<string, never, never>
  product_id: ColumnType<string, never, never>
  version: ColumnType<string, never, never>
  state: ColumnType<ProductState, never, never>
  version_key: ColumnType<readonly string[], never, never>
  /** The newest RELEASED version: what lists and details show of the product. */
  listed: ColumnType<boolean, never, never>
  revision: ColumnType<string, never, never>
  document: ColumnType<unknown, never, never>
}

/** A view of the usable brokers. */
export interface GatewayDocumentsView {
  account_id: ColumnType<string, never, never>
  id: ColumnType<string, never, never>
  document: ColumnType<unknown, never, never>
}

export interface ProductVersionEventApisTable {
  account_id: string
  product_id: string
  version: string
  event_api_id: string
  event_api_version: string
  position: number
}

export interface ProductVersionBrokersTable {
  account_id: string
  product_id: string
  version: string
  broker_id: string
}

export interface PlansTable {
  account_id: string
  product_id: string
  version: string
  id: string
  name: string
  class_of_service_policy: Json<ClassOfServicePolicy>
  position: number
}

export interface RegistrationsTable {
  account_id: string
  id: string
  name: string
  source: string
  source_owner: string | null
  application_domain_id: string | null
  filters: Json<Filters>
  attributes: Json<readonly NameValue[]>
  generation: Generated<number>
  declared: Generated<boolean>
  revision: string
  created_at: DefaultTimestamp
  updated_at: DefaultTimestamp
  deleted_at: NullableTimestamp
}

export interface AccessRequestsTable {
  account_id: string
  registration_id: string
  id: string
  product_id: string
  product_version: string
  plan_id: string
  state: AccessRequestState
  reason: string | null
  filters: Json<Filters>
  queue_nonce: string
  approved_at: NullableTimestamp
  expires_at: NullableTimestamp
  expired_at: NullableTimestamp
  revision: string
  created_at: DefaultTimestamp
}

export interface CredentialsTable {
  account_id: string
  registration_id: string
  id: string
  name: string
  consumer_key: string
  /** Sealed. */
  secret: string
  secret_version: number
  revision: string
  issued_at: DefaultTimestamp
  expires_at: NullableTimestamp
  retired_at: NullableTimestamp
}

/** What a webhook is, without what may be secret. */
export interface WebhookDefinition {
  readonly uri: string
  readonly method: 'POST' | 'PUT'
  readonly mode: 'parallel' | 'serial'
  readonly gatewayMessagingServiceIds?: readonly string[] | undefined
  readonly tlsTrustedCommonNames?: readonly string[] | undefined
  readonly appendTopicToUrl?: boolean | undefined
}

export interface WebhooksTable {
  account_id: string
  id: string
  registration_id: string
  name: string
  definition: Json<WebhookDefinition>
  /** Sealed. */
  secrets: string | null
  secrets_version: number
  created_at: DefaultTimestamp
}

export interface NotificationEndpointsTable {
  account_id: string
  id: string
  name: string
  kinds: NotificationKind[]
  enabled: boolean
  disabled_reason: string | null
  address: string
  /** Sealed. */
  secrets: string
  secrets_version: number
  created_at: DefaultTimestamp
  next_digest_at: NullableTimestamp
  blocked_until: NullableTimestamp
  failing_since: NullableTimestamp
  last_error: string | null
  last_delivered_at: NullableTimestamp
  lease_holder: string | null
  lease_until: NullableTimestamp
}

export interface NotificationDeliveriesTable {
  account_id: string
  endpoint_id: string
  id: string
  state: 'pending' | 'delivered' | 'dead'
  test: boolean
  notifications: number
  body: string
  attempts: Generated<number>
  next_attempt_at: Timestamp
  give_up_at: Timestamp
  last_attempt_at: NullableTimestamp
  last_status: number | null
  last_error: string | null
  created_at: Timestamp
  finished_at: NullableTimestamp
}

export interface NotificationsTable {
  id: ColumnType<number, never, never>
  account_id: string
  endpoint_id: string
  fact: string
  kind: SentKind
  subject: Json<unknown>
  occurred_at: Timestamp
  keep_until: NullableTimestamp
  delivery_id: string | null
}

export interface PairsTable {
  account_id: string
  registration_id: string
  broker_id: string
  wanted: boolean
  generation: number
  reached_generation: Generated<number>
  /** `PairState` of the reconcile core; `lagging` until the first run. */
  state: Generated<'in-sync' | 'held' | 'conflict' | 'refused' | 'error' | 'lagging'>
  reason: string | null
  /** Failed runs in a row. */
  attempts: Generated<number>
  /** When the first of them ended. */
  failing_since: NullableTimestamp
  needs_person: Generated<boolean>
  due_at: NullableTimestamp
  withdrawal_confirmed: Generated<boolean>
  disruptive_allowed_until: NullableTimestamp
  lease_holder: string | null
  lease_token: Generated<number>
  lease_until: NullableTimestamp
  reconciled_at: NullableTimestamp
  suspected_at: NullableTimestamp
  changed_at: DefaultTimestamp
}

export interface LedgerTable {
  account_id: string
  broker_id: string
  kind: 'clientProfile' | 'aclProfile' | 'clientUsername' | 'queue'
  name: string
  registration_id: string | null
  origin: 'created' | 'adopted'
  applied: NullableJson<LedgerApplied>
  confirmed_credential_version: number | null
  password_due: Generated<boolean>
  refused_version: number | null
  reapplied: Generated<boolean>
  withdrawn_at: NullableTimestamp
  created_at: DefaultTimestamp
  updated_at: DefaultTimestamp
}

export interface LedgerApplied {
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  readonly members: Readonly<Record<string, readonly string[]>>
}

export interface LoginVerdictsTable {
  account_id: string
  broker_id: string
  registration_id: string
  consumer_key: string
  protocol: Protocol
  credential_version: number
  outcome: VerdictOutcome
  reason: NotVerifiedReason | null
  detail: string
  checked_at: Timestamp
}

export interface LoginControlsTable {
  account_id: string
  broker_id: string
  protocol: Protocol
  outcome: NegativeControl
  detail: string
  checked_at: Timestamp
}

export interface AdoptionsTable {
  account_id: string
  broker_id: string
  kind: string
  name: string
  asked_by: string
  created_at: DefaultTimestamp
}

export interface RunsTable {
  id: string
  account_id: string
  broker_id: string
  registration_id: string | null
  kind: string
  trigger: string
  outcome: string
  steps: Generated<number>
  held: Generated<number>
  drift: Generated<number>
  conflicts: Generated<number>
  detail: ColumnType<Readonly<Record<string, unknown>>, string | undefined, string>
  error_code: string | null
  error: string | null
  started_at: Timestamp
  finished_at: NullableTimestamp
}

export interface DriftTable {
  id: ColumnType<number, never, never>
  account_id: string
  broker_id: string
  registration_id: string | null
  object_kind: string
  object_name: string
  kind: string
  reason: string
  before: Json<unknown>
  after: Json<unknown>
  action: 'reported' | 'repaired' | 'held' | 'failed'
  run_id: string
  repaired_by_run_id: string | null
  detected_at: Timestamp
  last_seen_at: Timestamp
  repaired_at: NullableTimestamp
}

export interface BrokerStatusTable {
  account_id: string
  broker_id: string
  reachable: boolean | null
  checked_at: NullableTimestamp
  error_code: string | null
  error: string | null
  semp_version: string | null
  sweep_run_id: string | null
  sweep_started_at: NullableTimestamp
  sweep_finished_at: NullableTimestamp
  sweep_outcome: string | null
  sweep_progress: NullableJson<unknown>
  sweep_checkpoint: NullableJson<unknown>
  lookalikes: NullableJson<unknown>
  listing_from: number | null
  health: Generated<'closed' | 'open' | 'half-open'>
  failures: Generated<number>
  retry_at: NullableTimestamp
  prober: string | null
  prober_until: NullableTimestamp
  paused: Generated<boolean>
}

export interface PausesTable {
  account_id: string
  scope: 'account' | 'registration'
  /** Of the registration; empty for the account. */
  id: string
  paused_by: string
  paused_at: DefaultTimestamp
}

export interface ScheduleTicksTable {
  schedule: string
  last_tick_at: Timestamp
}

export interface UsersTable {
  id: string
  name: string
  password_hash: string
  token_generation: Generated<number>
  created_at: DefaultTimestamp
}

export interface MembershipsTable {
  user_id: string
  account_id: string
  roles: UserRole[]
  created_at: DefaultTimestamp
}

export interface ApiTokensTable {
  id: string
  account_id: string
  user_id: string
  name: string
  secret_hash: string
  permissions: Permission[]
  created_at: DefaultTimestamp
  expires_at: NullableTimestamp
}

export interface SignInAttemptsTable {
  subject: string
  attempts: number
  window_ends_at: Timestamp
}

export interface AuditTable {
  id: ColumnType<number, never, never>
  at: Timestamp
  account_id: string | null
  actor_kind: 'user' | 'apiToken' | 'host'
  actor_id: string | null
  actor_name: string
  action: string
  subject: string
  outcome: 'done' | 'refused' | 'failed'
  request_id: string | null
  address: string | null
}

export interface FollowedCataloguesTable {
  account_id: string
  origin: string
  followed_since: NullableTimestamp
  passes: Generated<number>
  written_pass: Generated<number>
  started_at: NullableTimestamp
  succeeded_at: NullableTimestamp
  failed_at: NullableTimestamp
  error_code: string | null
  error: string | null
  warnings: Json<readonly string[]>
  unmanaged_brokers: Json<readonly { readonly id: string; readonly name: string }[]>
  messaging_of: Generated<string[]>
}

export interface FollowedDocumentsTable {
  account_id: string
  event_api_id: string
  version: string
  listed_digest: string
  document_digest: string
  read_at: Timestamp
  problem: string | null
}

/** Row types by table, as `migrations.ts` creates them. */
export interface Schema {
  accounts: AccountsTable
  environments: EnvironmentsTable
  event_meshes: EventMeshesTable
  brokers: BrokersTable
  application_domains: ApplicationDomainsTable
  event_apis: EventApisTable
  products: ProductsTable
  product_versions: ProductVersionsTable
  product_version_event_apis: ProductVersionEventApisTable
  product_version_brokers: ProductVersionBrokersTable
  plans: PlansTable
  product_documents: ProductDocumentsTable
  gateway_documents: GatewayDocumentsView
  registrations: RegistrationsTable
  access_requests: AccessRequestsTable
  credentials: CredentialsTable
  webhooks: WebhooksTable
  notification_endpoints: NotificationEndpointsTable
  notification_deliveries: NotificationDeliveriesTable
  notifications: NotificationsTable
  pairs: PairsTable
  ledger: LedgerTable
  adoptions: AdoptionsTable
  login_verdicts: LoginVerdictsTable
  login_controls: LoginControlsTable
  runs: RunsTable
  drift: DriftTable
  broker_status: BrokerStatusTable
  pauses: PausesTable
  schedule_ticks: ScheduleTicksTable
  users: UsersTable
  memberships: MembershipsTable
  api_tokens: ApiTokensTable
  sign_in_attempts: SignInAttemptsTable
  audit: AuditTable
  followed_catalogues: FollowedCataloguesTable
  followed_documents: FollowedDocumentsTable
}
