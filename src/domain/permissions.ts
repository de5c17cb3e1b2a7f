/** What an API token may be given. Their meaning in this service is in the sets below and at each route. */
export const PERMISSIONS = [
  'mission_control:access',
  'service_requests:post:client_profile',
  'services:get',
  'services:put',
  'services:post',
  'messaging_service:read',
  'modeled_event_mesh:get:*',
  'apim_event_api_product:*:*',
  'application_domain:get:*',
  'event_designer:access',
] as const
export type Permission = (typeof PERMISSIONS)[number]

/** What a user is in one account. */
export const USER_ROLES = ['administrator', 'service-management-editor', 'event-portal-manager'] as const
export type UserRole = (typeof USER_ROLES)[number]

/** Whether a user with these roles may hold tokens of the account at all. */
export function mayHoldTokens(roles: readonly UserRole[]): boolean {
  return (
    isAdministrator(roles) || (roles.includes('service-management-editor') && roles.includes('event-portal-manager'))
  )
}

export function isAdministrator(roles: readonly UserRole[]): boolean {
  return roles.includes('administrator')
}
