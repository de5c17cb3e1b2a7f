import type { Permission } from '../../domain/permissions.ts'
import {
  type AccessRule,
  BROKERS_WRITE,
  CATALOGUE_READ,
  CATALOGUE_WRITE,
  OPERATIONS_READ,
  REGISTRATIONS,
  requireAdministrator,
} from '../permissions.ts'

export const PORTAL = ['Portal']
export const BASE = '/api/v2/portal'

/** Who may read, create, and change or remove. */
export interface PortalAccess {
  readonly read: AccessRule
  readonly create: AccessRule
  readonly change: AccessRule
}

const API: Permission = 'apim_event_api_product:*:*'

export const CATALOGUE: PortalAccess = {
  read: requireAdministrator(...CATALOGUE_READ),
  create: requireAdministrator(...CATALOGUE_WRITE),
  change: requireAdministrator(...CATALOGUE_WRITE),
}

export const BROKERS: PortalAccess = {
  read: requireAdministrator(API, ...OPERATIONS_READ),
  create: requireAdministrator(API, ...BROKERS_WRITE),
  change: requireAdministrator(API, ...OPERATIONS_READ, 'services:put'),
}

/** Deciding on access requests. */
export const DECISIONS: AccessRule = requireAdministrator(...REGISTRATIONS)
