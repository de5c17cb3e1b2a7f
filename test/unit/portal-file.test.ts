import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { InvalidInputError } from '../../src/domain/errors.ts'
import { compareVersions } from '../../src/domain/semantic-version.ts'
import { parsePortalFile } from '../../src/portal-file/parse-portal-file.ts'

// The parser takes a quarter of a second for the smallest document; its findings are tested with the documents.
vi.mock('@asyncapi/parser', () => ({
  Parser: class {
    validate = async () => []
  },
}))

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'keymesh-portal-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true })
})

const environment: Readonly<Record<string, string>> = { BROKER_PASSWORD: 'from-the-environment', SHORT: 'short' }
const options = { env: (name: string) => environment[name] }

async function parse(text: string, files: Readonly<Record<string, string>> = {}) {
  for (const [name, content] of Object.entries({ ...files, 'portal.yaml': text })) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), content)
  }
  return await parsePortalFile(join(directory, 'portal.yaml'), options)
}

async function refusal(text: string, files?: Readonly<Record<string, string>>): Promise<InvalidInputError> {
  const error = await parse(text, files).then(
    () => null,
    (caught: unknown) => caught,
  )
  if (error instanceof InvalidInputError) return error
  throw new Error(`expected problems, got ${String(error)}`)
}

/** `line path: message` of every problem; the file only where it is another. */
async function problemsOf(text: string, files?: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { problems } = await refusal(text, files)
  return problems.map(({ file = '', line, path, message }) => {
    const name = file.slice(directory.length + 1)
    return `${name === 'portal.yaml' ? '' : `${name}:`}${line} ${path ?? ''}: ${message}`
  })
}

const document =
  'asyncapi: 2.6.0\ninfo: { title: Parcels, version: 1.0.0 }\nchannels:\n  parcel/{depot}:\n    parameters: { depot: { schema: { enum: [n, s] } } }\n    subscribe: {}\n'
const catalogue = `environments: [{ id: prod }]
eventMeshes: [{ id: mesh, environment: prod }]
brokers:
  - id: north
    eventMesh: mesh
    management: { url: "HTTP://North:80/", msgVpn: parcels, username: admin, passwordEnv: BROKER_PASSWORD }
    messaging: { host: north.example, protocols: { mqtt: 1883, smf: 55555 } }
eventApis:
  - { id: parcels, version: 1.9.0, document: api.yaml }
  - { id: parcels, version: 1.10.0, document: api.yaml }
products:
  - id: tracking
    versions:
      - version: 1.0.0
        state: RELEASED
        eventApis: [parcels]
        plans: [{ id: gold, name: Gold }]
        brokers: [north]
      - version: 2.0.0
        eventApis: [{ id: parcels, version: 1.9.0 }]
        plans: [{ id: gold, name: Gold }]
registrations:
  - id: shop
    filters: { depot: n }
    accessRequests: [{ id: shop-tracking, product: tracking, plan: gold }]
    credentials: [{ name: main, consumerKey: shop-key-1, consumerSecret: very-secret-1 }]
`
const change = (from: string | RegExp, to: string): string => {
  const changed = catalogue.replace(from, to)
  if (changed === catalogue) throw new Error(`${from} is not in the catalogue`)
  return changed
}
const files = { 'api.yaml': document }

describe('a portal file is read', () => {
  it('with defaults, references and secrets in place', async () => {
    const portal = await parse(catalogue, files)
    expect(portal.brokers).toMatchObject([
      {
        id: 'north',
        name: 'north',
        eventMeshId: 'mesh',
        management: {
          url: 'http://north',
          msgVpnName: 'parcels',
          username: 'admin',
          maxConcurrentRequests: 4,
          requestTimeoutMs: 30_000,
        },
        messaging: {
          host: 'north.example',
          protocols: [
            { protocol: 'smf', port: 55_555 },
            { protocol: 'mqtt', port: 1883 },
          ],
        },
        policy: { mode: 'full', window: null },
      },
    ])
    expect(portal.brokers[0]?.managementPassword?.reveal()).toBe('from-the-environment')
    expect(portal.eventApis.map(({ name, version, channels }) => [name, version, channels.length])).toEqual([
      ['Parcels', '1.9.0', 1],
      ['Parcels', '1.10.0', 1],
    ])
    expect(
      portal.products[0]?.versions.map(({ state, public: isPublic, eventApis }) => [state, isPublic, eventApis]),
    ).toEqual([
      ['RELEASED', false, [{ id: 'parcels', version: '1.10.0' }]],
      ['DRAFT', false, [{ id: 'parcels', version: '1.9.0' }]],
    ])
    expect(portal.registrations[0]).toMatchObject({
      source: 'portal-file',
      filters: { depot: ['n'] },
      accessRequests: [{ productVersion: '1.0.0', productVersionIsDefault: true, planId: 'gold', state: null }],
    })
    expect(portal.registrations[0]?.credentials[0]?.consumerSecret?.reveal()).toBe('very-secret-1')
    expect(portal.warnings).toEqual([])
  })

  it('and never shows a secret', async () => {
    const portal = await parse(catalogue, files)
    for (const text of [JSON.stringify(portal), inspect(portal, { depth: 20 })]) {
      expect(text).not.toMatch(/very-secret-1|from-the-environment/)
    }
  })

  it('with plans whose queue has no quota when it says so', async () => {
    const plan =
      '{ id: gold, name: Gold, messageDeliveryMode: guaranteed, maxMsgSpoolUsage: 0, unlimitedMsgSpoolUsage: true }'
    const portal = await parse(change('{ id: gold, name: Gold }', plan), files)
    expect(portal.products[0]?.versions[0]?.plans[0]?.classOfServicePolicy).toEqual({
      messageDeliveryMode: 'guaranteed',
      accessType: 'exclusive',
      queueType: 'combined',
      maximumTimeToLive: 86_400,
      maxMsgSpoolUsage: 0,
    })
  })

  it('with a broker that is not complete: unusable, with a warning of what it lacks', async () => {
    const portal = await parse(
      'brokers:\n  - id: north\n  - id: south\n    management: { url: https://s, msgVpn: v, username: u, password: }\n    messaging: { host: s }\n',
    )
    expect(
      portal.brokers.map(({ management, managementPassword, messaging }) => [
        management,
        managementPassword,
        messaging,
      ]),
    ).toEqual([
      [null, null, null],
      [null, null, { host: 's', protocols: [] }],
    ])
    expect(portal.warnings.map(({ line, message }) => `${line} ${message}`)).toEqual([
      '2 is unusable until it has an event mesh, management.url, management.msgVpn, management.username, management.password, messaging.host, a protocol in messaging.protocols',
      '3 is unusable until it has an event mesh, management.password, a protocol in messaging.protocols',
    ])
  })

  it('with a version that cannot be visible: no broker, no plan, a draft', async () => {
    const portal = await parse('products: [{ id: draft, versions: [{ version: 0.1.0 }] }]')
    expect(portal.products[0]?.versions[0]).toMatchObject({ state: 'DRAFT', public: false, plans: [], brokers: [] })
  })

  it.each([
    ['off: all', { off: 'all', maxPerSecond: 100, maxConcurrent: 16 }],
    ['off: [http, smf], perSecond: 0.5, concurrency: 2', { off: ['smf', 'http'], maxPerSecond: 0.5, maxConcurrent: 2 }],
    ['', { off: [], maxPerSecond: 100, maxConcurrent: 16 }],
  ])('with how credentials are proved on a broker: { %s }', async (logins, expected) => {
    const text = change('protocols: { mqtt: 1883', `logins: { ${logins} }, protocols: { mqtt: 1883`)
    expect((await parse(text, files)).brokers[0]?.messaging?.logins).toEqual(expected)
  })

  it('with a maintenance window that passes midnight', async () => {
    const text = change(
      '    eventMesh: mesh\n',
      '    eventMesh: mesh\n    policy: { disruptive: window, window: "23:30-01:15" }\n',
    )
    const portal = await parse(text, files)
    expect(portal.brokers[0]?.policy.window).toEqual({ fromMinute: 1410, toMinute: 75 })
  })
})

describe('a portal file is refused, with the line', () => {
  const spool = (settings: string): string =>
    change('{ id: gold, name: Gold }', `{ id: gold, name: Gold, ${settings} }`)
  const cases: Readonly<Record<string, readonly [string, readonly string[]]>> = {
    'broken YAML': ['brokers:\n  - id: north\n   name: x\n', [expect.stringMatching(/^3 : /)]],
    'an alias without its anchor': ['brokers:\n  - id: *north\n', ['2 : The anchor of the alias is not there']],
    'a key twice': ['brokers: []\nbrokers: []\n', ['2 : Map keys must be unique']],
    'an empty file': ['', ['1 : The file must hold a map of sections.']],
    'an unknown section': ['broker: []\n', ['1 broker: is no key that a portal file has here']],
    'an unknown key': [
      change('    eventMesh: mesh', '    mesh: mesh'),
      ['5 brokers[0].mesh: is no key that a portal file has here'],
    ],
    'a missing key': ['eventMeshes:\n  - id: mesh\n', ['2 eventMeshes[0].environment: is missing']],
    'a wrong type': ['brokers: north\n', ['1 brokers: must be a list']],
    'a number for text': [
      'products:\n  - id: tracking\n    versions:\n      - version: 1.0\n',
      ['4 products[0].versions[0].version: must be text; put it in quotes'],
    ],
    'a version that is none': [
      'products:\n  - id: tracking\n    versions:\n      - version: "1.0"\n',
      ['4 products[0].versions[0].version: must be a semantic version such as `1.2.0`'],
    ],
    'a product without versions': [
      'products:\n  - id: tracking\n    versions: []\n',
      ['3 products[0].versions: needs at least one version'],
    ],
    'a duplicate id': [
      'environments:\n  - id: prod\n  - id: prod\n',
      ['3 environments[1].id: `prod` is given already on line 2'],
    ],
    'a duplicate Event API version': [
      change('1.10.0', '1.9.0'),
      ['10 eventApis[1].id: `parcels` has the version 1.9.0 already on line 9'],
    ],
    'a duplicate product version': [
      change('version: 2.0.0', 'version: 1.0.0'),
      ['19 products[0].versions[1].version: `1.0.0` is given already on line 14'],
    ],
    'an unknown environment': [
      change('environment: prod', 'environment: test'),
      ['2 eventMeshes[0].environment: no environment `test` in `environments`'],
    ],
    'an unknown event mesh': [
      change('eventMesh: mesh', 'eventMesh: mash'),
      ['5 brokers[0].eventMesh: no event mesh `mash` in `eventMeshes`'],
    ],
    'an unknown Event API': [
      change('eventApis: [parcels]', 'eventApis: [letters]'),
      ['16 products[0].versions[0].eventApis[0]: no Event API `letters` in `eventApis`'],
    ],
    'an unknown Event API version': [
      change('parcels, version: 1.9.0 }]', 'parcels, version: 1.8.0 }]'),
      ['20 products[0].versions[1].eventApis[0]: Event API `parcels` has no version 1.8.0 in `eventApis`'],
    ],
    'an unknown broker': [
      change('brokers: [north]', 'brokers: [north, west]'),
      ['18 products[0].versions[0].brokers[1]: no broker `west` in `brokers`'],
    ],
    'an unknown product': [
      change('product: tracking', 'product: trucking'),
      ['25 registrations[0].accessRequests[0].product: no product `trucking` in `products`'],
    ],
    'an unknown plan': [
      change('plan: gold', 'plan: silver'),
      ['25 registrations[0].accessRequests[0].plan: version 1.0.0 of product `tracking` has no plan `silver`'],
    ],
    'a product without a released version': [
      change('state: RELEASED', 'state: RETIRED'),
      [
        '25 registrations[0].accessRequests[0].product: product `tracking` has no version in state RELEASED; name a version',
      ],
    ],
    'an unknown product version': [
      change('plan: gold }', 'plan: gold, version: 3.0.0 }'),
      ['25 registrations[0].accessRequests[0].version: product `tracking` has no version 3.0.0'],
    ],
    'an over-long name': [
      change('- id: shop', `- id: shop\n    name: ${'x'.repeat(129)}`),
      ['24 registrations[0].name: must be 1 to 128 characters long, it has 129'],
    ],
    'an over-long registration id': [
      change('- id: shop', `- id: ${'x'.repeat(65)}`),
      ['23 registrations[0].id: must be 2 to 64 characters long, it has 65'],
    ],
    'a forbidden character in a registration id': [
      change('- id: shop', '- id: shop/1'),
      [expect.stringMatching(/^23 registrations\[0\]\.id: may contain letters/)],
    ],
    'a forbidden character in a catalogue id': [
      'brokers:\n  - id: north-1\n',
      ['2 brokers[0].id: may contain letters and digits only'],
    ],
    'a forbidden character in a name': [
      'brokers:\n  - id: north\n    name: "a\\u0007b"\n',
      ['3 brokers[0].name: must not contain control characters'],
    ],
    'a forbidden character in a filter': [
      change('depot: n', 'depot: [n, ">"]'),
      ['24 registrations[0].filters.depot[1]: contains `>`'],
    ],
    'a filter without values': [
      change('depot: n', 'depot: []'),
      ['24 registrations[0].filters.depot: needs at least one value'],
    ],
    'a duplicate consumer key': [
      `${catalogue}  - id: other\n    credentials:\n      - { name: main, consumerKey: shop-key-1 }\n`,
      ['29 registrations[1].credentials[0].consumerKey: `shop-key-1` is given already on line 26'],
    ],
    'a duplicate credential name': [
      'registrations:\n  - id: shop\n    credentials:\n      - name: main\n      - name: main\n',
      ['5 registrations[0].credentials[1].name: `main` is given already on line 4'],
    ],
    'a consumer key that is too short': [
      change('shop-key-1', 'shop'),
      ['26 registrations[0].credentials[0].consumerKey: must be 8 to 64 characters long, it has 4'],
    ],
    'a secret without a key': [
      change('consumerKey: shop-key-1, ', ''),
      ['26 registrations[0].credentials[0].consumerSecret: needs a `consumerKey` beside it'],
    ],
    'a secret in the environment that is too short': [
      change('consumerSecret: very-secret-1', 'consumerSecretEnv: SHORT'),
      ['26 registrations[0].credentials[0].consumerSecretEnv: its value must be 8 to 64 characters long, it has 5'],
    ],
    'the same message VPN twice': [
      change('eventApis:\n', '  - id: south\n    management: { url: http://north, msgVpn: parcels }\neventApis:\n'),
      ['9 brokers[1].management.msgVpn: the message VPN `parcels` of this address is given already on line 6'],
    ],
    'a message VPN name that is too long': [
      change('msgVpn: parcels', `msgVpn: ${'v'.repeat(33)}`),
      ['6 brokers[0].management.msgVpn: must be 1 to 32 characters long, it has 33'],
    ],
    'a management address with a password': [
      change('HTTP://North:80/', 'http://a:b@north'),
      ['6 brokers[0].management.url: must not contain a username or a password'],
    ],
    'an environment variable that is not set': [
      change('BROKER_PASSWORD', 'NOT_SET'),
      ['6 brokers[0].management.passwordEnv: the environment variable NOT_SET is not set'],
    ],
    'an unknown protocol': [
      change('mqtt: 1883', 'jms: 1883'),
      [expect.stringMatching(/^7 brokers\[0\]\.messaging\.protocols\.jms: is no known protocol; known are smfc, smf,/)],
    ],
    'a port that is none': [
      change('mqtt: 1883', 'mqtt: 70000'),
      ['7 brokers[0].messaging.protocols.mqtt: must be at most 65535'],
    ],
    'logins that are switched off in words of their own': [
      change('protocols: { mqtt: 1883', 'logins: { off: none }, protocols: { mqtt: 1883'),
      ['7 brokers[0].messaging.logins.off: must be `all` or a list of protocols'],
    ],
    'logins over a protocol that nobody knows, and one twice': [
      change('protocols: { mqtt: 1883', 'logins: { off: [smf, jms, smf] }, protocols: { mqtt: 1883'),
      [
        expect.stringMatching(/^7 brokers\[0\]\.messaging\.logins\.off\[1\]: is no known protocol; known are smfc,/),
        '7 brokers[0].messaging.logins.off[2]: is in the list already',
      ],
    ],
    'logins at a pace that is none': [
      change(
        'protocols: { mqtt: 1883',
        'logins: { perSecond: 0, concurrency: 1000, maxPerSecond: 5 }, protocols: { mqtt: 1883',
      ),
      [
        '7 brokers[0].messaging.logins.perSecond: must be more than 0',
        '7 brokers[0].messaging.logins.concurrency: must be at most 100',
        '7 brokers[0].messaging.logins.maxPerSecond: is no key that a portal file has here',
      ],
    ],
    'a policy window without its times': [
      change('    eventMesh: mesh\n', '    eventMesh: mesh\n    policy: { disruptive: window }\n'),
      ['6 brokers[0].policy.disruptive: `window` needs `window: "02:00-04:00"` beside it'],
    ],
    'a queue without quota by accident': [
      spool('messageDeliveryMode: guaranteed, maxMsgSpoolUsage: 0'),
      [
        '17 products[0].versions[0].plans[0].maxMsgSpoolUsage: 0 switches the quota of the queue off; say `unlimitedMsgSpoolUsage: true` if that is meant',
      ],
    ],
    'a time to live below -1': [
      spool('maximumTimeToLive: -2'),
      ['17 products[0].versions[0].plans[0].maximumTimeToLive: must be at least -1'],
    ],
    'a time to live above 95,000,000': [
      spool('maximumTimeToLive: 95000001'),
      ['17 products[0].versions[0].plans[0].maximumTimeToLive: must be at most 95000000'],
    ],
    'a spool quota above 800,000': [
      spool('maxMsgSpoolUsage: 800001'),
      ['17 products[0].versions[0].plans[0].maxMsgSpoolUsage: must be at most 800000'],
    ],
    'an unknown state': [
      change('state: RELEASED', 'state: RELEASE'),
      [
        '15 products[0].versions[0].state: must be one of DRAFT, RELEASED, DEPRECATED, RETIRED',
        expect.stringContaining('has no version in state RELEASED'),
      ],
    ],
    'a missing certificate file': [
      change('username: admin', 'username: admin, caFile: ca.pem'),
      ['6 brokers[0].management.caFile: the file does not exist'],
    ],
    'a certificate file that is none': [
      change('username: admin', 'username: admin, caFile: api.yaml'),
      ['6 brokers[0].management.caFile: the file holds no PEM certificate'],
    ],
    'a time without its zone': [
      change('plan: gold }', 'plan: gold, expiresAt: 2030-01-01T00:00:00 }'),
      ['25 registrations[0].accessRequests[0].expiresAt: must be a time with its zone, such as `2030-01-31T00:00:00Z`'],
    ],
  }
  it.each(Object.entries(cases))('%s', async (_, [text, problems]) => {
    expect(await problemsOf(text, files)).toEqual(problems)
  })

  it('a file that is not there', async () => {
    const read = parsePortalFile(join(directory, 'gone.yaml'), options)
    await expect(read).rejects.toThrow('The file does not exist.')
  })

  it('topics that cannot be derived for an access request', async () => {
    const wide = document.replace('[n, s]', `[${Array.from({ length: 1001 }, (_, number) => `v${number}`)}]`)
    expect(await problemsOf(change('    filters: { depot: n }\n', ''), { 'api.yaml': wide })).toEqual([
      '24 registrations[0].accessRequests[0]: Channel `parcel/{depot}` gives 1001 topics, 1000 are allowed: narrow it with filters.',
    ])
  })

  it('every problem at once, those of AsyncAPI documents with their own file and line', async () => {
    const text = `brokers:
  - id: north-1
    eventMesh: gone
eventApis:
  - { id: parcels, version: 1.0.0, document: apis/new.yaml }
  - { id: letters, version: 1.0.0, document: apis/out.yaml }
  - { id: nothing, version: 1.0.0, document: apis/gone.yaml }
registrations:
  - id: x
    accessRequests:
      - { id: request, product: gone, plan: gold }
`
    const documents = {
      'apis/new.yaml': '# new\nasyncapi: 3.0.0\n',
      'apis/out.yaml': 'asyncapi: 2.6.0\ninfo: { title: x, version: 1.0.0 }\nchannels:\n  a:\n    $ref: ../out.yaml\n',
      'out.yaml': '',
    }
    expect(await problemsOf(text, documents)).toEqual([
      '2 brokers[0].id: may contain letters and digits only',
      '3 brokers[0].eventMesh: no event mesh `gone` in `eventMeshes`',
      '9 registrations[0].id: must be 2 to 64 characters long, it has 1',
      '11 registrations[0].accessRequests[0].product: no product `gone` in `products`',
      'apis/gone.yaml:undefined : The file does not exist. [eventApis[2].document (line 7)]',
      'apis/new.yaml:2 asyncapi: AsyncAPI 3.0.0 is not supported: convert the document to 2.6.0. Versions 2.0 to 2.6 are read. [eventApis[0].document (line 5)]',
      "apis/out.yaml:5 channels.a.$ref: The reference `../out.yaml` leads out of the document's own directory. [eventApis[1].document (line 6)]",
    ])
  })

  it('and never shows a secret in a problem', async () => {
    const secrets = [
      'very secret 1',
      'very-secret-1: x',
      '[very-secret-1]',
      '"very-secret-1',
      '{ a: very-secret-1 }',
      '*very-secret-1',
      '!very-secret-1',
      '&very-secret-1 x',
      '|very-secret-1',
      '@very-secret-1',
      '%very-secret-1',
      '`very-secret-1',
      '}very-secret-1',
      '"x"very-secret-1',
    ]
    for (const secret of secrets) {
      const error = await refusal(change('consumerSecret: very-secret-1', `consumerSecret: ${secret}`), files)
      expect(inspect(error, { depth: 20 })).not.toMatch(/very.secret/)
    }
  })
})

describe('versions', () => {
  it('are ordered by precedence', () => {
    const ordered = [
      'draft-2',
      'draft-10',
      '0.9.9',
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-2',
      '1.0.0',
      '1.2.0',
      '1.10.0',
    ]
    const expected = [
      'draft-2',
      'draft-10',
      '0.9.9',
      '1.0.0-2',
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0',
      '1.2.0',
      '1.10.0',
    ]
    expect(ordered.toReversed().toSorted(compareVersions)).toEqual(expected)
  })
})
