import {
  BROKERS_WRITE,
  CATALOGUE_WRITE,
  OPERATIONS_READ,
  REGISTRATIONS,
  requireAdministrator,
  requireMember,
} from '../permissions.ts'

const API = 'apim_event_api_product:*:*'

/** Looking. */
export const READ = requireMember(API, ...OPERATIONS_READ)
/** Changing what is there: runs, pauses, policies. */
export const CHANGE = requireMember(API, ...OPERATIONS_READ, 'services:put')
/** Taking something over that was not ours. */
export const CREATE = requireMember(API, ...BROKERS_WRITE)
/** Declaring everything at once, and removing it. */
export const IMPORT = requireAdministrator(...CATALOGUE_WRITE, ...REGISTRATIONS, ...BROKERS_WRITE)
/** Deciding where what happens in the account is told: outside of it. */
export const CHANGE_ENDPOINTS = requireAdministrator(API, ...BROKERS_WRITE)

export const OPERATIONS = ['Operations']
export const BASE = '/api/v2/operations'
