import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type BrokerObject, type MemberKind, OBJECT_KINDS, type ObjectRef } from '../../src/domain/broker-object.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'
import type { BrokerPort } from '../../src/reconcile/ports.ts'

/** A broker behind its port, without objects of the contract's names. */
export interface ContractSubject extends AsyncDisposable {
  readonly port: BrokerPort
  /** To reach a simulated broker from behind. */
  readonly hands?: BrokerHands
}

export interface BrokerHands {
  removeMsgVpn(): void
  passwordOf(clientUsername: string): string | null | undefined
  setQueuedMessages(queueName: string, count: number): void
  /** Sets how many connections a client profile allows per client username. */
  limitConnections(clientProfile: string, limit: number): void
  /** One more client is connected. */
  connect(clientUsername: string): void
  /** Writes that reached the broker so far. */
  writes(): number
}

export interface ContractOptions {
  /** Begins every name, so that nothing else on a broker that others use is touched. At most 12 characters. */
  readonly prefix?: string
  /** False: a broker that is not ours; what takes hands, or an empty broker, is left out. */
  readonly simulated?: boolean
  /** False: the SEMP user may not write client profiles. */
  readonly clientProfiles?: boolean
}

const object = (ref: ObjectRef, attributes: BrokerObject['attributes'] = {}): BrokerObject => ({
  ...ref,
  attributes,
  members: {},
})

const noHands = (): never => {
  throw new Error('a test that takes hands runs on a simulated broker only')
}

type MakeTest = (name: string, run: () => Promise<void>) => void

/** Instead of a test that is not made. */
const leftOut = (): void => undefined

/** The promises of BrokerPort; every adapter and every fake keeps them. */
export function brokerPortContract(
  name: string,
  makeSubject: () => Promise<ContractSubject>,
  { prefix = '', simulated = true, clientProfiles = true }: ContractOptions = {},
): void {
  const ACL = { kind: 'aclProfile', name: `${prefix}acl-1` } as const
  const PROFILE = { kind: 'clientProfile', name: `${prefix}profile-1` } as const
  const USER = { kind: 'clientUsername', name: `${prefix}user-1` } as const
  const QUEUE = { kind: 'queue', name: `${prefix}queue/1` } as const
  /** Tests that a broker cannot pass for what it is, or for who we are there, are not made. */
  const onSimulated: MakeTest = simulated ? it : leftOut
  const withProfiles: MakeTest = clientProfiles ? it : leftOut
  const withAll: MakeTest = simulated && clientProfiles ? it : leftOut

  describe(`${name} keeps the promises of the broker port`, () => {
    let subject: ContractSubject
    let port: BrokerPort
    beforeEach(async () => {
      subject = await makeSubject()
      port = subject.port
      await port.facts()
    })
    afterEach(() => subject?.[Symbol.asyncDispose]())

    const hands = (): BrokerHands => subject.hands ?? noHands()
    /** Brokers do not tell passwords: without hands this takes any for right. */
    const expectPassword = (expected: string): void => {
      if (simulated) expect(hands().passwordOf(USER.name)).toBe(expected)
    }
    const writes = (): number => subject.hands?.writes() ?? 0

    const failureOf = async (promise: Promise<unknown>): Promise<KeymeshError> => {
      const failure = await promise.then(
        () => 'nothing',
        (error: unknown) => error,
      )
      if (!(failure instanceof KeymeshError)) throw new Error(`expected a KeymeshError, got ${String(failure)}`)
      return failure
    }

    const listAll = async (kind: (typeof OBJECT_KINDS)[number]): Promise<readonly (readonly BrokerObject[])[]> => {
      const pages: (readonly BrokerObject[])[] = []
      for await (const page of port.list(kind)) pages.push(page)
      return pages
    }

    it('facts say what the broker is', async () => {
      const facts = await port.facts()
      if (!simulated) {
        expect(facts).toEqual({
          sempVersion: expect.stringMatching(/^\d+\.\d+$/),
          requiresDisable: expect.any(Boolean),
          msgVpnEnabled: true,
          basicAuthentication: { enabled: expect.any(Boolean), type: expect.any(String) },
        })
        return
      }
      expect(facts).toEqual({
        sempVersion: '2.49',
        requiresDisable: false,
        msgVpnEnabled: true,
        basicAuthentication: { enabled: true, type: 'internal' },
      })
    })

    onSimulated('a missing message VPN is a named error for a person, and then nothing is absent', async () => {
      await port.create(object(ACL), null)
      hands().removeMsgVpn()
      expect(await failureOf(port.facts())).toMatchObject({ code: 'MSG_VPN_NOT_FOUND', fate: 'stop' })
      const attempts: readonly (() => Promise<unknown>)[] = [
        () => port.get(ACL),
        () => port.members(ACL),
        () => listAll('aclProfile'),
        () => port.create(object(QUEUE), null),
        () => port.update(ACL, { publishTopicDefaultAction: 'allow' }, null),
        () => port.addMember(ACL, 'publishTopicExceptions', 'a'),
        () => port.removeMember(ACL, 'publishTopicExceptions', 'a'),
        () => port.delete(ACL),
        () => port.connections(USER.name),
      ]
      for (const attempt of attempts) expect((await failureOf(attempt())).code).toBe('MSG_VPN_NOT_FOUND')
    })

    it.each([ACL, PROFILE, USER, QUEUE])('an absent $kind is null', async (ref) => {
      expect(await port.get(ref)).toBeNull()
      expect(await port.members(ref)).toBeNull()
    })

    it('an object is created with the attributes given, the rest is the default of the broker, members are none', async () => {
      const attributes = { accessType: 'non-exclusive', permission: 'consume', maxTtl: 60, ingressEnabled: true }
      await port.create({ ...QUEUE, attributes, members: { subscriptions: ['not/added/here'] } }, null)
      expect(await port.get(QUEUE)).toEqual({
        ...QUEUE,
        attributes: {
          ...attributes,
          owner: '',
          egressEnabled: false,
          respectTtlEnabled: false,
          maxMsgSpoolUsage: simulated ? 5000 : expect.any(Number),
        },
        members: {},
      })
      expect(await port.members(QUEUE)).toEqual({ subscriptions: [] })
    })

    it('a name that is taken is ALREADY_EXISTS, and the object stays as it was', async () => {
      await port.create(object(USER, { enabled: true }), new Secret('first'))
      const failure = await failureOf(port.create(object(USER, { enabled: false }), new Secret('second')))
      expect(failure.code).toBe('ALREADY_EXISTS')
      expect((await port.get(USER))?.attributes.enabled).toBe(true)
      expectPassword('first')
    })

    withProfiles('an update writes what it is given and nothing else', async () => {
      await port.create(object(ACL), null)
      await port.create(object(PROFILE), null)
      await port.create(
        object(USER, { aclProfileName: ACL.name, clientProfileName: PROFILE.name }),
        new Secret('first'),
      )
      await port.update(USER, { enabled: true }, null)
      expect((await port.get(USER))?.attributes).toMatchObject({ enabled: true, aclProfileName: ACL.name })
      expectPassword('first')
      await port.update(USER, {}, new Secret('sécond "quoted" \\'))
      expect((await port.get(USER))?.attributes).toMatchObject({ enabled: true, clientProfileName: PROFILE.name })
      expectPassword('sécond "quoted" \\')
    })

    it('an update of what is absent is NOT_FOUND', async () => {
      expect((await failureOf(port.update(USER, { enabled: true }, null))).code).toBe('NOT_FOUND')
      expect(await port.get(USER)).toBeNull()
    })

    it('members are sets: adding twice and removing what is not there succeed', async () => {
      await port.create(object(QUEUE), null)
      for (const topic of ['b/>', 'a/*', 'b/>']) await port.addMember(QUEUE, 'subscriptions', topic)
      expect(await port.members(QUEUE)).toEqual({ subscriptions: ['a/*', 'b/>'] })
      for (const topic of ['b/>', 'b/>', 'never/there']) await port.removeMember(QUEUE, 'subscriptions', topic)
      expect(await port.members(QUEUE)).toEqual({ subscriptions: ['a/*'] })
    })

    it('each kind of member is a set of its own', async () => {
      await port.create(object(ACL), null)
      const kinds: readonly MemberKind[] = [
        'publishTopicExceptions',
        'subscribeTopicExceptions',
        'publishTopicExceptionsMqtt',
        'subscribeTopicExceptionsMqtt',
      ]
      for (const kind of kinds) for (const topic of ['shared', kind]) await port.addMember(ACL, kind, topic)
      await port.removeMember(ACL, 'publishTopicExceptionsMqtt', 'shared')
      expect(await port.members(ACL)).toEqual({
        publishTopicExceptions: ['publishTopicExceptions', 'shared'],
        subscribeTopicExceptions: ['shared', 'subscribeTopicExceptions'],
        publishTopicExceptionsMqtt: ['publishTopicExceptionsMqtt'],
        subscribeTopicExceptionsMqtt: ['shared', 'subscribeTopicExceptionsMqtt'],
      })
    })

    it('names and topics keep every character', async () => {
      const names = ["o'neil, (a/b) 50% & #?".replace('?', ''), 'ünï/cödé 😀', '%2F..%2F', '...']
      for (const text of names.map((each) => `${prefix}${each}`)) {
        const user = { kind: 'clientUsername', name: text } as const
        await port.create(object(user), new Secret('x'))
        expect((await port.get(user))?.name).toBe(text)
        await port.create(object({ ...ACL, name: text.slice(0, 30) }), null)
        await port.addMember({ ...ACL, name: text.slice(0, 30) }, 'publishTopicExceptions', `${text}/>,*`)
        const members = await port.members({ ...ACL, name: text.slice(0, 30) })
        expect(members?.publishTopicExceptions).toEqual([`${text}/>,*`])
        await port.removeMember({ ...ACL, name: text.slice(0, 30) }, 'publishTopicExceptions', `${text}/>,*`)
        expect((await port.members({ ...ACL, name: text.slice(0, 30) }))?.publishTopicExceptions).toEqual([])
        await port.delete(user)
        expect(await port.get(user)).toBeNull()
      }
    })

    it('members of an absent object: adding is NOT_FOUND, removing succeeds', async () => {
      expect((await failureOf(port.addMember(ACL, 'publishTopicExceptions', 'a'))).code).toBe('NOT_FOUND')
      await port.removeMember(ACL, 'publishTopicExceptions', 'a')
      expect(await port.get(ACL)).toBeNull()
    })

    it('deleting what is there and what is not succeeds', async () => {
      await port.create(object(QUEUE), null)
      await port.delete(QUEUE)
      await port.delete(QUEUE)
      expect(await port.get(QUEUE)).toBeNull()
    })

    it.each(clientProfiles ? [ACL, PROFILE] : [ACL])(
      'a $kind that an enabled username uses is not deleted, and a person is told',
      async (ref) => {
        await port.create(object(ref), null)
        await port.create(object(USER, { enabled: true, [`${ref.kind}Name`]: ref.name }), new Secret('x'))
        const failure = await failureOf(port.delete(ref))
        expect(failure).toMatchObject({ fate: 'stop' })
        expect(failure.hint ?? failure.message).toBeTruthy()
        expect(await port.get(ref)).not.toBeNull()
      },
    )

    it('a list has every object once, in pages of at most 100, with attributes and without members', async () => {
      const expected = Array.from({ length: 230 }, (_, index) => `${prefix}listed-${index}`)
      await Promise.all(
        expected.map((listed) => port.create(object({ kind: 'queue', name: listed }, { maxTtl: 7 }), null)),
      )
      const pages = await listAll('queue')
      const found = pages.flat().filter((queue) => queue.name.startsWith(`${prefix}listed-`))
      expect(found.map((queue) => queue.name).sort()).toEqual([...expected].sort())
      expect(found.every((queue) => queue.attributes.maxTtl === 7 && Object.keys(queue.members).length === 0)).toBe(
        true,
      )
      expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(100)
      expect(Math.min(...pages.map((page) => page.length))).toBeGreaterThan(0)
    })

    withProfiles('a listed object is what a point read gives', async () => {
      await port.create(object(ACL), null)
      await port.create(object(PROFILE), null)
      await port.create(object(USER), new Secret('x'))
      await port.create(object(QUEUE), null)
      for (const kind of OBJECT_KINDS) {
        const listed = (await listAll(kind)).flat().filter((each) => each.name.startsWith(prefix))
        expect(listed.length).toBeGreaterThan(0)
        for (const each of listed) expect(await port.get(each)).toEqual(each)
      }
    })

    it('a caller may leave a list early', async () => {
      for (let index = 0; index < 120; index += 1)
        await port.create(object({ kind: 'queue', name: `${prefix}q-${index}` }), null)
      for await (const page of port.list('queue')) {
        expect(page.length).toBeGreaterThan(0)
        break
      }
      expect((await port.facts()).msgVpnEnabled).toBe(true)
    })

    it('queued messages are counted, and null for an absent queue', async () => {
      expect(await port.queuedMessages(QUEUE.name)).toBeNull()
      await port.create(object(QUEUE), null)
      expect(await port.queuedMessages(QUEUE.name)).toBe(0)
      if (!simulated) return
      hands().setQueuedMessages(QUEUE.name, 3)
      expect(await port.queuedMessages(QUEUE.name)).toBe(3)
    })

    withAll(
      'connections are told where the client profile limits them: those of the client username, up to the limit',
      async () => {
        const others = ['user-10', 'user-1,x', "o'neil%2C #&"].map(
          (name) => ({ kind: 'clientUsername', name }) as const,
        )
        await port.create(object(PROFILE), null)
        for (const user of [USER, ...others]) {
          await port.create(object(user, { clientProfileName: PROFILE.name }), new Secret('x'))
        }
        hands().limitConnections(PROFILE.name, 150)
        expect(await port.connections(USER.name)).toEqual({ open: 0, limit: 150 })
        for (const user of others) {
          hands().connect(user.name)
          expect(await port.connections(user.name)).toEqual({ open: 1, limit: 150 })
        }
        for (let count = 0; count < 120; count += 1) hands().connect(USER.name)
        expect(await port.connections(USER.name)).toEqual({ open: 120, limit: 150 })
        for (let count = 0; count < 40; count += 1) hands().connect(USER.name)
        expect(await port.connections(USER.name)).toEqual({ open: 150, limit: 150 })
      },
    )

    onSimulated('connections that nobody limits, and those of an absent client username, are null', async () => {
      await port.create(object(USER), new Secret('x'))
      hands().connect(USER.name)
      expect(await port.connections(USER.name)).toBeNull()
      expect(await port.connections('absent')).toBeNull()
    })

    const badNames: readonly ObjectRef[] = [
      { kind: 'clientUsername', name: '' },
      { kind: 'clientUsername', name: 'x'.repeat(190) },
      { kind: 'clientUsername', name: 'a*' },
      { kind: 'clientUsername', name: '..' },
      { kind: 'clientUsername', name: '\ud800' },
      { kind: 'clientProfile', name: 'with space' },
      { kind: 'aclProfile', name: 'x'.repeat(33) },
      { kind: 'queue', name: 'a?b' },
      { kind: 'queue', name: '.' },
    ]
    it.each(badNames)('the name of $kind $name is refused before the broker sees it', async (ref) => {
      const before = writes()
      const attempts: readonly (() => Promise<unknown>)[] = [
        () => port.get(ref),
        () => port.members(ref),
        () => port.create(object(ref), null),
        () => port.update(ref, {}, null),
        () => port.delete(ref),
      ]
      for (const attempt of attempts) {
        expect(await failureOf(attempt())).toMatchObject({ code: 'INVALID_NAME', fate: 'stop' })
      }
      expect(writes()).toBe(before)
    })

    it.each(['', '..', 'x'.repeat(251)])('the topic %j is refused, and its queue stays', async (topic) => {
      await port.create(object(QUEUE), null)
      expect((await failureOf(port.addMember(QUEUE, 'subscriptions', topic))).code).toBe('INVALID_NAME')
      expect((await failureOf(port.removeMember(QUEUE, 'subscriptions', topic))).code).toBe('INVALID_NAME')
      expect(await port.get(QUEUE)).not.toBeNull()
    })

    it('an attribute that is not managed is refused', async () => {
      const before = writes()
      expect((await failureOf(port.create(object(QUEUE, { partitionCount: 3 }), null))).code).toBe('UNKNOWN_ATTRIBUTE')
      expect((await failureOf(port.update(USER, { password: 'x' }, null))).code).toBe('UNKNOWN_ATTRIBUTE')
      expect(writes()).toBe(before)
    })

    it('no error holds the password', async () => {
      const secret = new Secret('not-for-messages')
      const wrong = object(USER, { aclProfileName: `${prefix}missing` })
      const failure = await failureOf(port.create(wrong, secret))
      expect(failure.fate).toBe('stop')
      if (simulated) expect(failure.code).toBe('SEMP_INVALID_PARAMETER')
      const shown = [
        failure.message,
        failure.stack,
        failure.hint,
        JSON.stringify(failure),
        String(failure.cause),
      ].join()
      expect(shown).not.toContain('not-for-messages')
    })

    it('an aborted call does nothing', async () => {
      const signal = AbortSignal.abort()
      const before = writes()
      expect((await failureOf(port.create(object(QUEUE), null, signal))).code).toBe('ABORTED')
      expect((await failureOf(port.get(QUEUE, signal))).code).toBe('ABORTED')
      expect((await failureOf(port.connections(USER.name, signal))).code).toBe('ABORTED')
      expect(writes()).toBe(before)
    })

    it('a closed port does nothing, and closes twice', async () => {
      await port.close()
      await port.close()
      expect(await failureOf(port.get(QUEUE))).toMatchObject({ code: 'BROKER_CLOSED' })
    })
  })
}
