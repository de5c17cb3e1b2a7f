import { DONE, type JobHandler } from './job-handler.ts'

export const verifyBroker: JobHandler<'verify-broker'> = async (payload, { services, signal, progress }) => {
  const { accountId, brokerId, registrationId, protocol } = payload
  const what = { ...(registrationId && { registrationId }), ...(protocol && { protocol }) }
  await services.verifyBroker({ accountId, brokerId }, what, signal, progress)
  return DONE
}
