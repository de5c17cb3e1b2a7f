import { describe, expect, it } from 'vitest'
import { brokerPortContract } from './broker-port-contract.ts'
import { givenBroker, newPrefix, objectsNamed, subjectOn } from './given-broker.ts'

const broker = givenBroker(process.env)
if (broker === null)
  process.stderr.write('skipped: the broker contract on a given broker (KEYMESH_TEST_SEMP_URL is not set)\n')

describe.skipIf(broker === null)('a given broker', () => {
  const prefix = newPrefix()
  if (broker !== null) {
    const { clientProfiles } = broker
    brokerPortContract('the Solace adapter', () => subjectOn(broker), { prefix, simulated: false, clientProfiles })
  }

  it('is left without anything of this run', async () => {
    if (broker === null) throw new Error('no broker was given')
    expect(await objectsNamed(broker, prefix)).toEqual([])
  })
})
