import { describe, expect, it } from 'vitest'
import { accountId, brokerId } from '../../src/domain/ids.ts'
import { brokerQueue } from '../../src/queue/queue-names.ts'

const name = (account: string, broker: string): string =>
  brokerQueue({ accountId: accountId(account), brokerId: brokerId(broker) })

describe('the queue of a broker', () => {
  it('is readable when the ids are plain', () => {
    expect(name('acme', 'broker_1')).toBe('broker-acme-broker_1')
  })

  it('is safe on both engines and bounded, whatever the ids', () => {
    for (const id of ['a:b', 'ü', '', 'x'.repeat(500), '{tag}', 'a b', '../..', '*', "'; drop"]) {
      expect(name(id, id)).toMatch(/^broker-[A-Za-z0-9_-]{1,65}$/)
    }
  })

  it('differs whenever the ids differ', () => {
    const long = 'x'.repeat(30)
    const ids = ['a', 'b', 'a-b', 'b-c', 'a:b', 'a b', 'ab', long, `${long}y`, '', 'A']
    const names = ids.flatMap((account) => ids.map((broker) => name(account, broker)))
    expect(new Set(names).size).toBe(ids.length ** 2)
    // A plain id that imitates the hash of other ids.
    const hashed = name('a-b', 'c')
    const [, readable = '', hash = ''] = hashed.split('-')
    expect(name(readable, hash)).not.toBe(hashed)
  })

  it('stays the same over releases', () => {
    expect(name('acme-corp', 'b1')).toMatchInlineSnapshot(`"broker-b1-bca484f27cc72e5d763e50fc5ce4c659"`)
  })
})
