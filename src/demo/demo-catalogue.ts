import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { accessRequestId, consumerKey, registrationId } from '../domain/ids.ts'
import type { PortalBroker, PortalFile, PortalRegistration } from '../domain/portal-file.ts'
import { Secret } from '../domain/secret.ts'
import { parsePortalFile } from '../portal-file/parse-portal-file.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

/** The sample catalogue, its brokers pointed at the sandbox. */
export async function demoCatalogue(sandbox: Sandbox): Promise<PortalFile> {
  const file = await parsePortalFile(join(projectDirectory(), 'examples', 'catalogue.yaml'), {
    // The sample names variables for its passwords; the sandbox has passwords of its own.
    env: () => 'replaced-below',
  })
  return { ...file, brokers: file.brokers.map((broker, index) => onSandbox(broker, sandbox, index)) }
}

function onSandbox(broker: PortalBroker, sandbox: Sandbox, index: number): PortalBroker {
  const simulated = sandbox.broker(index)
  if (broker.management === null) return broker
  const { url, msgVpnName, username, password } = simulated
  return {
    ...broker,
    management: { ...broker.management, url, msgVpnName, username },
    managementPassword: new Secret(password),
    messaging: { host: 'localhost', protocols: simulated.endpoints, caCertificate: simulated.caCertificate },
  }
}

/** The examples stand beside package.json, whether this runs from the sources or from the build. */
function projectDirectory(): string {
  let directory = import.meta.dirname
  while (!existsSync(join(directory, 'package.json'))) {
    const parent = dirname(directory)
    if (parent === directory) throw new Error('the examples are missing: package.json was not found')
    directory = parent
  }
  return directory
}

export const LEGACY_USERNAME = 'legacy-dispatcher'

/** A newcomer that asks for a client username which one broker already has, and which is not ours. */
export function withNewcomer(file: PortalFile): PortalFile {
  const newcomer: PortalRegistration = {
    id: registrationId('dispatch-console'),
    name: 'Dispatch console',
    source: 'internal-portal',
    sourceOwner: null,
    applicationDomainId: null,
    filters: {},
    attributes: [],
    accessRequests: [
      {
        id: accessRequestId('dispatch-console-live'),
        productId: productOf(file),
        productVersion: '2.0.0',
        productVersionIsDefault: true,
        planId: 'open',
        filters: {},
        state: null,
        expiresAtMs: null,
      },
    ],
    credentials: [{ name: 'main', consumerKey: consumerKey(LEGACY_USERNAME), consumerSecret: null, expiresAtMs: null }],
  }
  return { ...file, registrations: [...file.registrations, newcomer] }
}

function productOf(file: PortalFile) {
  const product = file.products.find(({ id }) => id === 'liveTrainData')
  if (product === undefined) throw new Error('the sample catalogue has lost its product liveTrainData')
  return product.id
}
