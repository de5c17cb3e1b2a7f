import { z } from 'zod'
import type { ManagementSettings } from '../../domain/catalogue.ts'
import type { Secret } from '../../domain/secret.ts'
import { SempClient } from './semp-client.ts'
import { encodePart } from './semp-paths.ts'
import { readOne } from './semp-reads.ts'

/** What the broker says that its SEMP user may do; levels are the broker's words. */
export interface UserAccess {
  /** `admin`, `read-write`, `read-only` or `none`. */
  readonly global: string
  /** On the message VPN: `read-write`, `read-only` or `none`. */
  readonly msgVpn: string
}

const USER = z.object({ globalAccessLevel: z.string() })
const USER_MSG_VPN = z.object({ accessLevel: z.string() })
const ABOUT_USER = '/SEMP/v2/config/about/user'

/**
 * Reads the access levels of the SEMP user, since 2.2 (`/about/user` of the configuration API); writes nothing. A broker
 * or a proxy that does not serve them answers with an error.
 */
export async function readUserAccess(
  settings: ManagementSettings,
  password: Secret,
  signal?: AbortSignal,
): Promise<UserAccess> {
  const client = new SempClient(settings, password, { maxRepeats: 0 })
  try {
    const describe = (): string => 'read what the SEMP user may do'
    const user = { kind: 'about', path: ABOUT_USER, select: ['globalAccessLevel'], describe, schema: USER }
    const { globalAccessLevel } = await readOne(client, user, signal)
    const path = `${ABOUT_USER}/msgVpns/${encodePart(settings.msgVpnName)}`
    const onMsgVpn = { kind: 'about', path, select: ['accessLevel'], describe, schema: USER_MSG_VPN }
    const { accessLevel } = await readOne(client, onMsgVpn, signal)
    return { global: globalAccessLevel, msgVpn: accessLevel }
  } finally {
    await client.close()
  }
}
