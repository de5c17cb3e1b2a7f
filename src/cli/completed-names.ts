import { z } from 'zod'
import { type Process, toServiceAddress } from '../config.ts'

export type CompletedNames = 'broker' | 'registration'

/** Nobody waits longer for a name that can be typed. */
const PATIENCE_MS = 1_500
const MAX_NAMES = 200

/** Of a service or a database that is named in the environment; an embedded database is not started for it. */
export async function completedNames(
  environment: Pick<Process, 'env'>,
  what: CompletedNames,
): Promise<readonly string[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<readonly string[]>((resolve) => {
    timer = setTimeout(() => resolve([]), PATIENCE_MS)
  })
  try {
    return await Promise.race([findNames(environment, what), late])
  } finally {
    clearTimeout(timer)
  }
}

async function findNames(environment: Pick<Process, 'env'>, what: CompletedNames): Promise<readonly string[]> {
  const address = toServiceAddress(environment, {})
  if (address !== null) {
    const { ServiceClient } = await import('../operations/service-client.ts')
    const client = new ServiceClient(address)
    try {
      const path = what === 'broker' ? ['status'] : ['registrations', 'status']
      const schema = z.object({ brokerId: z.string(), registrationId: z.string().optional() })
      const rows = (await client.list({ method: 'GET', path }, MAX_NAMES)).map((row) => schema.parse(row))
      return [...new Set(rows.map((row) => (what === 'broker' ? row.brokerId : (row.registrationId ?? ''))))]
    } finally {
      await client.close()
    }
  }
  const { DATABASE_URL: connectionString, KEYMESH_ACCOUNT: account = 'default' } = environment.env
  if (connectionString === undefined || connectionString === '') return []
  const { openDatabase } = await import('../store/database.ts')
  const { db, close } = openDatabase({ connectionString, maxConnections: 1, onIdleError: () => undefined })
  try {
    const table = what === 'broker' ? 'brokers' : 'registrations'
    const rows = await db
      .selectFrom(table)
      .select('id')
      .where('account_id', 'in', (of) => of.selectFrom('accounts').select('id').where('name', '=', account))
      .orderBy('id')
      .limit(MAX_NAMES)
      .execute()
    return rows.map(({ id }) => id)
  } finally {
    await close()
  }
}
