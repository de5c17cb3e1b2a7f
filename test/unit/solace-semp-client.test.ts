import { describe, expect, it, vi } from 'vitest'
import { SempClient, type SempClientOptions, type SempRequest } from '../../src/brokers/solace/semp-client.ts'
import type { ManagementSettings } from '../../src/domain/catalogue.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'
import { type Answer, type SempDouble, sendData, sendJson, sendRefusal, startDouble } from '../contract/semp-double.ts'
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY, OTHER_CA, TRUSTED_CA } from '../contract/tls-fixtures.ts'

const BASIC = `Basic ${Buffer.from('semp-admin:management-secret').toString('base64')}`

const READ: SempRequest = { method: 'GET', kind: 'queue', path: '/SEMP/v2/config/x', describe: () => 'read the thing' }
const WRITE: SempRequest = { ...READ, method: 'POST', describe: () => 'create the thing', body: '{}' }

interface Setup {
  readonly double: SempDouble
  readonly client: SempClient
}

async function withClient(
  answer: Answer,
  work: (setup: Setup) => Promise<void>,
  changes: Partial<ManagementSettings> & { options?: SempClientOptions; tls?: boolean } = {},
): Promise<void> {
  const { options, tls, ...settings } = changes
  const key = tls === true ? { key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE } : undefined
  await using double = await startDouble(answer, key)
  const client = new SempClient(double.settings(settings), new Secret('management-secret'), {
    repeatDelayMs: 1,
    ...options,
  })
  try {
    await work({ double, client })
  } finally {
    await client.close()
  }
}

async function failureOf(promise: Promise<unknown>): Promise<KeymeshError> {
  const failure = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(failure instanceof KeymeshError)) throw new Error(`expected a KeymeshError, got ${String(failure)}`)
  return failure
}

/** A broker's session handling: basic opens one and sets its cookie, only the present cookie is accepted. */
function sessions(): { answer: Answer; end: () => void; logins: () => number } {
  let logins = 0
  let valid = ''
  return {
    end: () => {
      valid = ''
    },
    logins: () => logins,
    answer: ({ headers }, response) => {
      if (headers.authorization === BASIC) {
        logins += 1
        valid = `session=s${logins}`
        response.setHeader('set-cookie', `${valid}; Path=/; HttpOnly`)
        return sendData(response, {})
      }
      if (valid !== '' && headers.cookie === valid) return sendData(response, {})
      return sendRefusal(response, 1, 'UNAUTHORIZED', 'no', 401)
    },
  }
}

describe('the SEMP session', () => {
  it('is opened once for many requests at once, and its cookie alone is sent from then on', async () => {
    const broker = sessions()
    await withClient(broker.answer, async ({ double, client }) => {
      await Promise.all(Array.from({ length: 12 }, () => client.send(READ)))
      expect(broker.logins()).toBe(1)
      expect(double.requests).toHaveLength(12)
      expect(double.requests.filter(({ headers }) => headers.authorization !== undefined)).toHaveLength(1)
    })
  })

  it('is opened once more when it ended, however many requests find out', async () => {
    const broker = sessions()
    await withClient(broker.answer, async ({ client }) => {
      await client.send(READ)
      await client.send(READ)
      broker.end()
      await Promise.all(Array.from({ length: 8 }, () => client.send(WRITE)))
      expect(broker.logins()).toBe(2)
    })
  })

  it('is not tried again with a login that was refused: everyone who waits gets the refusal', async () => {
    const answer: Answer = (_request, response) => sendJson(response, 401, {})
    await withClient(answer, async ({ double, client }) => {
      const failures = await Promise.all(Array.from({ length: 4 }, () => failureOf(client.send(READ))))
      expect(failures.map(({ code, fate }) => `${code} ${fate}`)).toEqual(Array(4).fill('SEMP_LOGIN_REFUSED stop'))
      expect(double.requests).toHaveLength(1)
      expect(failures[0]?.message).not.toContain('management-secret')
    })
  })

  it('lets another request log in when the first one gives up', async () => {
    const broker = sessions()
    const answer: Answer = (request, response) => {
      if (request.number > 1) broker.answer(request, response)
    }
    await withClient(answer, async ({ double, client }) => {
      const abort = new AbortController()
      const first = failureOf(client.send({ ...READ, signal: abort.signal }))
      await vi.waitFor(() => expect(double.requests).toHaveLength(1))
      // A write is not repeated, so it must not share the failure of the one that gave up.
      const second = client.send(WRITE)
      abort.abort()
      expect((await first).code).toBe('ABORTED')
      await second
      expect(broker.logins()).toBe(1)
    })
  })

  it('is given up for basic authentication when no cookie comes', async () => {
    const answer: Answer = ({ headers }, response) =>
      headers.authorization === BASIC ? sendData(response, {}) : sendJson(response, 401, {})
    await withClient(answer, async ({ double, client }) => {
      await client.send(READ)
      await Promise.all([client.send(READ), client.send(READ)])
      expect(double.requests.every(({ headers }) => headers.authorization === BASIC)).toBe(true)
      expect(double.requests).toHaveLength(3)
    })
  })

  it('is given up for basic authentication when the cookie is not a session', async () => {
    const answer: Answer = ({ headers }, response) => {
      response.setHeader('set-cookie', 'sticky=node1')
      return headers.authorization === BASIC ? sendData(response, {}) : sendJson(response, 401, {})
    }
    await withClient(answer, async ({ double, client }) => {
      for (let count = 0; count < 4; count += 1) await client.send(READ)
      expect(double.requests).toHaveLength(5)
      expect(double.requests.at(-1)?.headers).toMatchObject({ authorization: BASIC, cookie: 'sticky=node1' })
    })
  })
})

describe('a repeat inside the call', () => {
  const failing =
    (times: number, fail: Answer): Answer =>
    (request, response) =>
      request.number <= times ? fail(request, response) : sendData(response, {})
  const status =
    (code: number): Answer =>
    (_request, response) =>
      sendJson(response, code, {})
  const reset: Answer = (_request, response) => response.destroy()

  const cases: readonly [string, SempRequest, Answer, number][] = [
    ['a read after 503', READ, status(503), 3],
    ['a write after 503: the broker did not process it', WRITE, status(503), 3],
    ['a write after 529', WRITE, status(529), 3],
    ['a write after 429', WRITE, status(429), 3],
    ['a read after a reset', READ, reset, 3],
    ['a read after 502', READ, status(502), 3],
    ['a read after SEMP code 229', READ, (_request, response) => sendRefusal(response, 229, 'TIME_OUT'), 3],
  ]
  it.each(cases)('is made of %s', async (_name, request, fail, expected) => {
    await withClient(failing(2, fail), async ({ double, client }) => {
      await client.send(request)
      expect(double.requests).toHaveLength(expected)
    })
  })

  const single: readonly [string, SempRequest, Answer, string][] = [
    ['a write after a reset: nobody knows what came of it', WRITE, reset, 'BROKER_CONNECTION_LOST retry'],
    ['a write after 502', WRITE, status(502), 'BROKER_GATEWAY_ERROR retry'],
    ['a write after 500', WRITE, status(500), 'BROKER_INTERNAL_ERROR retry'],
    ['a read after 404 without a SEMP answer', READ, status(404), 'BROKER_ANSWER_UNEXPECTED retry'],
    [
      'a read after SEMP code 6',
      READ,
      (_request, response) => sendRefusal(response, 6, 'NOT_FOUND'),
      'NOT_FOUND retry',
    ],
  ]
  it.each(single)('is not made of %s', async (_name, request, fail, expected) => {
    await withClient(failing(1, fail), async ({ double, client }) => {
      const { code, fate } = await failureOf(client.send(request))
      expect(`${code} ${fate}`).toBe(expected)
      expect(double.requests).toHaveLength(1)
    })
  })

  it.each([
    [503, 'BROKER_UNAVAILABLE'],
    [529, 'SEMP_SESSIONS_EXHAUSTED'],
    [429, 'BROKER_TOO_MANY_REQUESTS'],
  ])('ends after %i each time, and the work waits', async (code, expected) => {
    await withClient(status(code), async ({ double, client }) => {
      expect(await failureOf(client.send(READ))).toMatchObject({ code: expected, fate: 'wait' })
      expect(double.requests).toHaveLength(4)
    })
  })
})

describe('an answer that is none', () => {
  const raw =
    (body: string): Answer =>
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(body)
    }
  const half: Answer = (_request, response) => {
    response.writeHead(200, { 'content-length': 1000 })
    response.write('{"data": {')
    setImmediate(() => response.destroy())
  }
  const meta = { responseCode: 200 }
  const error = { code: 6, status: 'NOT_FOUND', description: '' }

  const cases: readonly [string, Answer, string][] = [
    ['half a body', half, 'BROKER_CONNECTION_LOST'],
    ['HTML', raw('<html>login</html>'), 'BROKER_ANSWER_UNEXPECTED'],
    ['half of a JSON text', raw('{"meta":{"respon'), 'BROKER_ANSWER_UNEXPECTED'],
    ['nothing', raw(''), 'BROKER_ANSWER_UNEXPECTED'],
    ['JSON null', raw('null'), 'BROKER_ANSWER_UNEXPECTED'],
    ['an array', raw('[]'), 'BROKER_ANSWER_UNEXPECTED'],
    ['no meta', raw('{"data":{}}'), 'BROKER_ANSWER_UNEXPECTED'],
    ['an error under HTTP status 200', raw(JSON.stringify({ meta: { ...meta, error } })), 'BROKER_ANSWER_UNEXPECTED'],
    ['another response code', raw('{"meta":{"responseCode":400}}'), 'BROKER_ANSWER_UNEXPECTED'],
    [
      'code 6 under HTTP status 500',
      (_request, response) => sendRefusal(response, 6, 'NOT_FOUND', '', 500),
      'BROKER_INTERNAL_ERROR',
    ],
    [
      'an error without a description',
      (_request, response) => sendJson(response, 400, { meta: { error: { code: 6 }, responseCode: 400 } }),
      'BROKER_ANSWER_UNEXPECTED',
    ],
    [
      'a redirect',
      (_request, response) => response.writeHead(302, { location: 'http://localhost:1/' }).end(),
      'BROKER_ANSWER_UNEXPECTED',
    ],
  ]
  it.each(cases)('is an error that may pass: %s', async (_name, answer, expected) => {
    await withClient(answer, async ({ client }) => {
      expect(await failureOf(client.send(READ))).toMatchObject({ code: expected, fate: 'retry' })
    })
  })

  it('is bounded in size', async () => {
    const answer: Answer = (_request, response) => {
      response.writeHead(200)
      response.end('x'.repeat(20_000))
    }
    await withClient(
      answer,
      async ({ double, client }) => {
        expect((await failureOf(client.send(READ))).code).toBe('BROKER_ANSWER_TOO_LARGE')
        expect(double.requests).toHaveLength(1)
      },
      { options: { maxAnswerBytes: 10_000 } },
    )
  })
})

describe('the deadline of a call', () => {
  const silent: Answer = () => undefined
  const trickle: Answer = (_request, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write(' '), 10)
    response.on('close', () => clearInterval(timer))
  }
  const flood: Answer = (_request, response) => sendJson(response, 503, {})

  it.each([
    ['no answer', silent],
    ['an answer that trickles', trickle],
  ])('holds for %s', async (_name, answer) => {
    await withClient(
      answer,
      async ({ client }) => {
        const startedMs = performance.now()
        expect(await failureOf(client.send(READ))).toMatchObject({ code: 'BROKER_TIMEOUT', fate: 'retry' })
        expect(performance.now() - startedMs).toBeLessThan(3_000)
      },
      { requestTimeoutMs: 150 },
    )
  })

  it('holds over all repeats, and the last refusal is the error', async () => {
    await withClient(
      flood,
      async ({ client }) => {
        const startedMs = performance.now()
        expect((await failureOf(client.send(READ))).code).toBe('BROKER_UNAVAILABLE')
        expect(performance.now() - startedMs).toBeLessThan(3_000)
      },
      { requestTimeoutMs: 150, options: { maxRepeats: 1_000, repeatDelayMs: 20 } },
    )
  })
})

describe('an abort', () => {
  it('ends a request that is under way, one that waits for a slot, and one that would repeat', async () => {
    const answer: Answer = ({ url }, response) => {
      if (url.endsWith('/busy')) sendJson(response, 503, {})
    }
    const run = async ({ double, client }: Setup): Promise<void> => {
      const abort = new AbortController()
      const { signal } = abort
      const busy = failureOf(client.send({ ...READ, path: '/SEMP/v2/config/busy', signal }))
      await vi.waitFor(() => expect(double.requests).toHaveLength(1))
      const underWay = failureOf(client.send({ ...READ, signal }))
      await vi.waitFor(() => expect(double.requests).toHaveLength(2))
      const waiting = failureOf(client.send({ ...READ, signal }))
      abort.abort()
      const codes = (await Promise.all([busy, underWay, waiting])).map(({ code, fate }) => `${code} ${fate}`)
      expect(codes).toEqual(Array(3).fill('ABORTED retry'))
      expect(double.requests).toHaveLength(2)
    }
    await withClient(answer, run, { maxConcurrentRequests: 1, options: { repeatDelayMs: 1_000 } })
  })

  it('passes its own reason on when that is one of ours', async () => {
    await withClient(
      () => undefined,
      async ({ client }) => {
        const reason = new KeymeshError({ code: 'LEASE_LOST', fate: 'retry', message: 'The lease was lost.' })
        expect(await failureOf(client.send({ ...READ, signal: AbortSignal.abort(reason) }))).toBe(reason)
      },
    )
  })
})

describe('TLS', () => {
  const answer: Answer = (_request, response) => sendData(response, {})

  it('trusts the CA of the broker', async () => {
    await withClient(answer, async ({ client }) => void (await client.send(READ)), {
      tls: true,
      caCertificate: TRUSTED_CA,
    })
  })

  it.each([
    ['another CA', OTHER_CA],
    ['no CA of its own', undefined],
  ])('stops with %s', async (_name, caCertificate) => {
    await withClient(
      answer,
      async ({ double, client }) => {
        expect(await failureOf(client.send(READ))).toMatchObject({ code: 'BROKER_TLS_UNTRUSTED', fate: 'stop' })
        expect(double.requests).toHaveLength(0)
      },
      { tls: true, ...(caCertificate === undefined ? {} : { caCertificate }) },
    )
  })

  it('refuses what is no certificate before anything is sent', () => {
    const settings: ManagementSettings = {
      url: 'https://localhost:1',
      msgVpnName: 'v',
      username: 'u',
      maxConcurrentRequests: 1,
      requestTimeoutMs: 100,
      caCertificate: 'not a certificate',
    }
    expect(() => new SempClient(settings, new Secret('p'))).toThrow(
      expect.objectContaining({ code: 'INVALID_CA_CERTIFICATE' }),
    )
    const broken = TRUSTED_CA + OTHER_CA.replace(/\n[A-Za-z0-9+/]/, '\n@')
    expect(() => new SempClient({ ...settings, caCertificate: broken }, new Secret('p'))).toThrow(
      expect.objectContaining({ code: 'INVALID_CA_CERTIFICATE' }),
    )
  })
})

describe('what cannot be reached', () => {
  it.each([
    ['a closed port', 'http://127.0.0.1:1', 'BROKER_UNREACHABLE'],
    ['a name that does not exist', 'http://broker.invalid', 'BROKER_NAME_UNRESOLVED'],
  ])('%s may come back', async (_name, url, expected) => {
    await withClient(
      () => undefined,
      async ({ client }) => {
        expect(await failureOf(client.send(READ))).toMatchObject({ code: expected, fate: 'retry' })
      },
      { url, options: { maxRepeats: 0 } },
    )
  })

  it('a closed client sends nothing', async () => {
    await withClient(
      (_request, response) => sendData(response, {}),
      async ({ double, client }) => {
        await client.close()
        expect((await failureOf(client.send(READ))).code).toBe('BROKER_CLOSED')
        expect(double.requests).toHaveLength(0)
      },
    )
  })
})

describe('what the broker says', () => {
  it('reaches the message without secrets, control characters and without end', async () => {
    const answer: Answer = (_request, response) =>
      sendRefusal(
        response,
        11,
        'INVALID_PARAMETER',
        `bad\u0000\u001b[31m "p@ss\\"wörd" management-secret ${'x'.repeat(9000)}`,
      )
    await withClient(answer, async ({ client }) => {
      const { code, fate, message } = await failureOf(client.send({ ...WRITE, secrets: ['p@ss"wörd'] }))
      expect({ code, fate }).toEqual({ code: 'SEMP_INVALID_PARAMETER', fate: 'stop' })
      expect(message).toMatch(/^Could not create the thing at http:\/\/localhost:\d+: /)
      expect(message).not.toMatch(/p@ss|management-secret|\p{Cc}/u)
      expect(message.length).toBeLessThan(800)
    })
  })

  it('is counted and observed request by request', async () => {
    const broker = sessions()
    const onRequest = vi.fn()
    await withClient(
      broker.answer,
      async ({ client }) => {
        await client.send(READ)
        await client.send(READ)
        broker.end()
        await client.send(WRITE)
        expect(client.requestCount).toBe(4)
        expect(
          onRequest.mock.calls.map(([event]) => `${event.method} ${event.kind} ${event.status} ${event.code}`),
        ).toEqual(['GET queue 200 null', 'GET queue 200 null', 'POST queue 401 SESSION_ENDED', 'POST queue 200 null'])
        expect(onRequest.mock.calls[0]?.[0].seconds).toBeGreaterThan(0)
      },
      { options: { onRequest } },
    )
  })
})

describe('the limits of a broker', () => {
  it('bound what runs at once', async () => {
    let running = 0
    let most = 0
    const answer: Answer = (_request, response) => {
      running += 1
      most = Math.max(most, running)
      setTimeout(() => {
        running -= 1
        sendData(response, {})
      }, 5)
    }
    await withClient(
      answer,
      async ({ client }) => void (await Promise.all(Array.from({ length: 15 }, () => client.send(READ)))),
      {
        maxConcurrentRequests: 3,
      },
    )
    expect(most).toBe(3)
  })

  it('spread the requests over time', async () => {
    await withClient(
      (_request, response) => sendData(response, {}),
      async ({ client }) => {
        const startedMs = performance.now()
        await Promise.all(Array.from({ length: 11 }, () => client.send(READ)))
        expect(performance.now() - startedMs).toBeGreaterThanOrEqual(180)
      },
      { maxRequestsPerSecond: 50 },
    )
  })
})
