import type { z } from 'zod'
import type { AccessRequestView } from '../../store/access-requests-view.ts'
import type { CredentialView } from '../../store/credentials-view.ts'
import type { FilterView } from '../../store/filters-view.ts'
import type { RegistrationView } from '../../store/registration-view.ts'
import type { EventApiView } from '../../store/registration-view-versions.ts'
import { parseWebhookSecrets, type WebhookView } from '../../store/webhooks-view.ts'
import type { accessRequest } from './schemas/access-request.ts'
import type { credential } from './schemas/credential.ts'
import type { filter } from './schemas/filter.ts'
import type { eventApiVersion } from './schemas/product.ts'
import type { registration } from './schemas/registration.ts'
import type { webhook } from './schemas/webhook.ts'

// From what the store shows to what the API answers. Only here are secrets turned into text.

export const filterAnswer = ({ name, values }: FilterView): z.input<typeof filter> => ({ name, values: [...values] })

export const credentialAnswer = (view: CredentialView): z.input<typeof credential> => ({
  name: view.name,
  secret: { consumerKey: view.consumerKey, consumerSecret: view.consumerSecret.reveal() },
  issuedAt: view.issuedAtMs,
  expiresAt: view.expiresAtMs ?? -1,
})

export function accessRequestAnswer(view: AccessRequestView): z.input<typeof accessRequest> {
  const { filters, eventApiResourceInformation: queues, ...rest } = view
  return {
    ...rest,
    filters: filters.map(filterAnswer),
    ...(queues === undefined ? {} : { eventApiResourceInformation: [...queues] }),
  }
}

export const eventApiAnswer = (view: EventApiView): z.input<typeof eventApiVersion> => ({
  id: view.id,
  name: view.name,
  displayName: view.displayName,
  description: view.description,
  version: view.version,
  customAttributes: [...view.customAttributes],
})

export function webhookAnswer({ name, definition, secrets }: WebhookView): z.input<typeof webhook> {
  const { gatewayMessagingServiceIds: ids, tlsTrustedCommonNames: commonNames, ...rest } = definition
  return {
    name,
    ...rest,
    ...(ids === undefined ? {} : { gatewayMessagingServiceIds: [...ids] }),
    ...(commonNames === undefined ? {} : { tlsOptions: { tlsTrustedCommonNames: [...commonNames] } }),
    ...parseWebhookSecrets(secrets),
  }
}

export const registrationAnswer = (view: RegistrationView): z.input<typeof registration> => ({
  registrationId: view.registrationId,
  source: view.source,
  name: view.name,
  ...(view.sourceOwner === null ? {} : { sourceOwner: view.sourceOwner }),
  ...(view.applicationDomainId === null ? {} : { applicationDomainId: view.applicationDomainId }),
  brokerType: 'solace',
  attributes: [...view.attributes],
  filters: view.filters.map(filterAnswer),
  accessRequests: view.accessRequests.map(accessRequestAnswer),
  apis: view.apis.map(eventApiAnswer),
  credentials: view.credentials.map(credentialAnswer),
  webhooks: view.webhooks.map(webhookAnswer),
  gatewayMessagingServices: view.gatewayMessagingServices.map(gatewayAnswer),
})

function gatewayAnswer({
  name,
  messagingServiceConnections,
  permissions,
}: RegistrationView['gatewayMessagingServices'][number]) {
  return {
    name,
    messagingServiceConnections: messagingServiceConnections.map((each) => ({
      ...each,
      messagingServiceAuthentications: [...each.messagingServiceAuthentications],
    })),
    permissions: {
      publish: permissions.publish.map(channelsAnswer),
      subscribe: permissions.subscribe.map(channelsAnswer),
    },
  }
}

const channelsAnswer = (
  channels: RegistrationView['gatewayMessagingServices'][number]['permissions']['publish'][number],
) =>
  Object.fromEntries(
    Object.entries(channels).map(([name, { permissions, ...rest }]) => [
      name,
      { ...rest, permissions: [...permissions] },
    ]),
  )
