import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { InvalidInputError } from '../../src/domain/errors.ts'
import { type AsyncApiOptions, readAsyncApiDocument } from '../../src/portal-file/asyncapi-document.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'keymesh-asyncapi-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true })
})

/** Files by path; the document is `apis/api.yaml`. */
type Files = Readonly<Record<string, string>>

async function read(files: Files, options?: AsyncApiOptions) {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), text)
  }
  return await readAsyncApiDocument(join(directory, 'apis/api.yaml'), options)
}

/** `file:line message` of every problem. */
async function problemsOf(files: Files): Promise<readonly string[]> {
  const error = await read(files).then(
    () => null,
    (caught: unknown) => caught,
  )
  if (!(error instanceof InvalidInputError)) throw new Error(`expected problems, got ${String(error)}`)
  return error.problems.map(({ file, line, message }) => `${file?.slice(directory.length + 1)}:${line} ${message}`)
}

const api = (channels: string, rest = ''): string =>
  `asyncapi: 2.6.0\ninfo: { title: Test, version: 1.0.0 }\nchannels:\n${channels}${rest}`
const withPayload = (reference: string): string =>
  api(`  a/b:\n    subscribe:\n      message:\n        payload:\n          $ref: '${reference}'\n`)

describe('an AsyncAPI document is refused, with the line', () => {
  const cases: Readonly<Record<string, readonly [Files, readonly string[]]>> = {
    'that is broken YAML': [
      { 'apis/api.yaml': 'asyncapi: 2.6.0\ninfo:\n  title: "x\nchannels: {}\n' },
      [expect.stringMatching(/^apis\/api\.yaml:\d .*quote/)],
    ],
    'that has a key twice': [
      { 'apis/api.yaml': api('  a/b: {}\n  a/b: {}\n') },
      ['apis/api.yaml:5 Map keys must be unique'],
    ],
    'that is empty': [
      { 'apis/api.yaml': '' },
      ['apis/api.yaml:1 The file is no AsyncAPI document: it has no `asyncapi` version.'],
    ],
    'that is another kind of document': [
      { 'apis/api.yaml': 'openapi: 3.1.0\n' },
      ['apis/api.yaml:1 The file is no AsyncAPI document: it has no `asyncapi` version.'],
    ],
    'of version 3': [
      { 'apis/api.yaml': '# new\nasyncapi: 3.0.0\ninfo: { title: x, version: 1.0.0 }\nchannels: {}\n' },
      ['apis/api.yaml:2 AsyncAPI 3.0.0 is not supported: convert the document to 2.6.0. Versions 2.0 to 2.6 are read.'],
    ],
    'of version 1': [
      { 'apis/api.yaml': 'asyncapi: 1.2.0\n' },
      ['apis/api.yaml:1 The AsyncAPI version "1.2.0" is not supported; versions 2.0 to 2.6 are read.'],
    ],
    'of a version that does not exist': [
      { 'apis/api.yaml': 'asyncapi: 2.7.0\n' },
      ['apis/api.yaml:1 The AsyncAPI version "2.7.0" is not supported; versions 2.0 to 2.6 are read.'],
    ],
    'that the parser refuses': [
      {
        'apis/api.yaml':
          'asyncapi: 2.6.0\ninfo:\n  title: x\nchannels:\n  a/b:\n    subscribe:\n      operationId: 7\n',
      },
      [
        'apis/api.yaml:2 "info" property must have required property "version"',
        'apis/api.yaml:7 "operationId" property type must be string',
      ],
    ],
    'without channels': [
      { 'apis/api.yaml': 'asyncapi: 2.6.0\ninfo: { title: x, version: 1.0.0 }\n' },
      [
        'apis/api.yaml:1 The document has no map of channels.',
        'apis/api.yaml:1 Object must have required property "channels"',
      ],
    ],
    'whose channel has a forbidden character': [
      { 'apis/api.yaml': api('  a/b: {}\n  a/>:\n    subscribe: {}\n') },
      [
        'apis/api.yaml:3 "channels" property must match format "uri-template"',
        'apis/api.yaml:5 The channel contains `>` in `>`.',
      ],
    ],
    'whose channel is longer than a topic may be': [
      { 'apis/api.yaml': api(`  a/b: {}\n  ${'x'.repeat(251)}:\n    subscribe: {}\n`) },
      [expect.stringMatching(/^apis\/api\.yaml:5 .*has 251 bytes/)],
    ],
    'whose enum has a forbidden character': [
      {
        'apis/api.yaml': api(
          '  a/{p}:\n    parameters:\n      p: { schema: { type: string, enum: [x, y/z] } }\n    subscribe: {}\n',
        ),
      },
      ['apis/api.yaml:4 The channel has a parameter `p` whose enum value "y/z" contains `/`.'],
    ],
    'whose enum has no text': [
      {
        'apis/api.yaml': api(
          '  a/{p}:\n    parameters:\n      p:\n        schema:\n          enum: [x, { y: z }]\n    subscribe: {}\n',
        ),
      },
      ['apis/api.yaml:8 A value of a channel parameter must be text.'],
    ],
    'whose x-view is unknown': [
      { 'apis/api.yaml': 'asyncapi: 2.6.0\ninfo:\n  title: x\n  version: 1.0.0\n  x-view: server\nchannels: {}\n' },
      ['apis/api.yaml:5 `x-view` must be `client` or `provider`.'],
    ],
    'whose x-views differ': [
      {
        'apis/api.yaml':
          'asyncapi: 2.6.0\ninfo: { title: x, version: 1.0.0, x-view: client }\nchannels: {}\nx-view: provider\n',
      },
      ['apis/api.yaml:4 contradicts the `x-view` under `info`.'],
    ],
    'that refers out of its directory': [
      { 'apis/api.yaml': withPayload('../secret.yaml'), 'secret.yaml': 'type: string\n' },
      ["apis/api.yaml:8 The reference `../secret.yaml` leads out of the document's own directory."],
    ],
    'that refers out of its directory by a detour': [
      {
        'apis/api.yaml': withPayload('schemas/../../secret.yaml'),
        'apis/schemas/x.yaml': '',
        'secret.yaml': 'type: string\n',
      },
      ["apis/api.yaml:8 The reference `schemas/../../secret.yaml` leads out of the document's own directory."],
    ],
    'that refers out of its directory in disguise': [
      { 'apis/api.yaml': withPayload('%2e%2e/secret.yaml'), 'secret.yaml': 'type: string\n' },
      ["apis/api.yaml:8 The reference `%2e%2e/secret.yaml` leads out of the document's own directory."],
    ],
    'whose file refers out of the directory': [
      {
        'apis/api.yaml': withPayload('schemas/a.yaml'),
        'apis/schemas/a.yaml': 'type: object\nproperties:\n  b:\n    $ref: ../../secret.yaml\n',
        'secret.yaml': 'type: string\n',
      },
      ["apis/schemas/a.yaml:4 The reference `../../secret.yaml` leads out of the document's own directory."],
    ],
    'that refers to a sibling directory with a longer name': [
      { 'apis/api.yaml': withPayload('../apis-private/a.yaml'), 'apis-private/a.yaml': 'type: string\n' },
      ["apis/api.yaml:8 The reference `../apis-private/a.yaml` leads out of the document's own directory."],
    ],
    'that refers to an absolute path': [
      { 'apis/api.yaml': withPayload('/etc/hostname') },
      [
        "apis/api.yaml:8 The reference `/etc/hostname` is an absolute path; only files of the document's own directory are read.",
      ],
    ],
    'that refers to a file address': [
      { 'apis/api.yaml': withPayload('file:///etc/hostname') },
      [
        "apis/api.yaml:8 The reference `file:///etc/hostname` is an address; only files of the document's own directory are read.",
      ],
    ],
    'that refers to an address without scheme': [
      { 'apis/api.yaml': withPayload('//example.com/a.yaml') },
      [
        "apis/api.yaml:8 The reference `//example.com/a.yaml` is an address; only files of the document's own directory are read.",
      ],
    ],
    'that refers to a missing file': [
      { 'apis/api.yaml': withPayload('gone.yaml') },
      ['apis/api.yaml:8 The reference `gone.yaml` names a file that does not exist.'],
    ],
    'that refers to a directory': [
      { 'apis/api.yaml': withPayload('schemas'), 'apis/schemas/x.yaml': '' },
      ['apis/api.yaml:8 The reference `schemas` names a file that is not a file.'],
    ],
    'that refers to broken YAML': [
      { 'apis/api.yaml': withPayload('a.yaml'), 'apis/a.yaml': 'type: string\ntype: object\n' },
      ['apis/a.yaml:2 Map keys must be unique'],
    ],
    'that refers to nothing': [
      { 'apis/api.yaml': withPayload('#/components/schemas/gone') },
      ['apis/api.yaml:8 The reference `#/components/schemas/gone` leads to nothing.'],
    ],
    'that refers to an anchor': [
      { 'apis/api.yaml': withPayload('#gone') },
      ['apis/api.yaml:8 The reference `#gone` has a fragment that is no JSON pointer.'],
    ],
    'whose channels refer to each other': [
      { 'apis/api.yaml': api('  a/b:\n    $ref: "#/channels/a~1c"\n  a/c:\n    $ref: "#/channels/a~1b"\n') },
      [
        'apis/api.yaml:5 The reference `#/channels/a~1c` leads back to itself.',
        'apis/api.yaml:7 The reference `#/channels/a~1b` leads back to itself.',
      ],
    ],
    'whose parameter refers to itself': [
      {
        'apis/api.yaml': api(
          '  a/{p}:\n    parameters:\n      p:\n        $ref: "#/components/parameters/p"\n',
          'components:\n  parameters:\n    p:\n      $ref: "#/components/parameters/p"\n',
        ),
      },
      [
        'apis/api.yaml:7 The reference `#/components/parameters/p` leads back to itself.',
        'apis/api.yaml:11 The reference `#/components/parameters/p` leads back to itself.',
      ],
    ],
    'whose files refer only to each other': [
      { 'apis/api.yaml': withPayload('a.yaml'), 'apis/a.yaml': '$ref: b.yaml\n', 'apis/b.yaml': '$ref: a.yaml\n' },
      [
        'apis/api.yaml:8 The reference `#/x-bundled-files/1-a.yaml` leads back to itself.',
        'apis/a.yaml:1 The reference `#/x-bundled-files/2-b.yaml` leads back to itself.',
        'apis/b.yaml:1 The reference `#/x-bundled-files/1-a.yaml` leads back to itself.',
      ],
    ],
  }
  it.each(Object.entries(cases))('%s', async (_, [files, problems]) => {
    expect(await problemsOf(files)).toEqual(problems)
  })

  it('that is not there', async () => {
    expect(await problemsOf({})).toEqual(['apis/api.yaml:undefined The file does not exist.'])
  })

  it('that refers through a symbolic link out of its directory', async () => {
    await mkdir(join(directory, 'apis'))
    await writeFile(join(directory, 'secret.yaml'), 'type: string\n')
    await symlink('../secret.yaml', join(directory, 'apis/link.yaml'))
    expect(await problemsOf({ 'apis/api.yaml': withPayload('link.yaml') })).toEqual([
      "apis/api.yaml:8 The reference `link.yaml` leads out of the document's own directory.",
    ])
  })

  it('that refers over the network, which is never asked', async () => {
    let requests = 0
    const server = createServer((_, response) => {
      requests += 1
      response.end('type: string')
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    try {
      const address = server.address()
      const port = typeof address === 'object' ? address?.port : null
      const url = `http://127.0.0.1:${port}/a.yaml`
      expect(await problemsOf({ 'apis/api.yaml': withPayload(url) })).toEqual([
        `apis/api.yaml:8 The reference \`${url}\` is an address; only files of the document's own directory are read.`,
      ])
      // A schema's own id is a name, and the parser must not fetch it either.
      await read({
        'apis/api.yaml': api(`  a/b:\n    subscribe: { message: { payload: { $id: '${url}', type: string } } }\n`),
      })
      expect(requests).toBe(0)
    } finally {
      await new Promise((closed) => server.close(closed))
    }
  })

  it('that grows without end once its references are followed', async () => {
    const schemas = Array.from({ length: 40 }, (_, number) => {
      const next = `{ $ref: '#/components/schemas/s${number + 1}' }`
      return `    s${number}: ${number === 39 ? '{}' : `{ properties: { a: ${next}, b: ${next} } }`}\n`
    })
    const files = { 'apis/api.yaml': api('  a/b: {}\n', `components:\n  schemas:\n${schemas.join('')}`) }
    expect(await problemsOf(files)).toEqual([
      'apis/api.yaml:1 The document has more than 100000 values once its references are followed.',
    ])
  })

  it('that grows without end once its aliases are followed', async () => {
    const lines = Array.from(
      { length: 20 },
      (_, number) => `x${number}: &x${number} [${`*x${number - 1},`.repeat(number === 0 ? 0 : 9)}]\n`,
    )
    expect(await problemsOf({ 'apis/api.yaml': lines.join('') })).toEqual([
      'apis/api.yaml:1 The document is too large once its aliases are followed',
    ])
  })

  it('that is nested too deeply', async () => {
    expect(await problemsOf({ 'apis/api.yaml': `asyncapi: ${'['.repeat(300)}${']'.repeat(300)}` })).toEqual([
      'apis/api.yaml:1 The document is nested deeper than 200 levels',
    ])
    expect(await problemsOf({ 'apis/api.yaml': `a: ${'['.repeat(200_000)}` })).toEqual([
      expect.stringContaining('apis/api.yaml:1 '),
    ])
  })
})

describe('an AsyncAPI document is read', () => {
  const both =
    '  sent/{p}:\n    parameters: { p: { schema: { type: string } } }\n    publish: {}\n  got:\n    subscribe: {}\n'
  const directions = async (files: Files, options?: AsyncApiOptions) =>
    (await read(files, options)).channels.map(({ name, clientMayPublish, clientMaySubscribe }) => [
      name,
      clientMayPublish,
      clientMaySubscribe,
    ])

  it.each<[string, string, AsyncApiOptions, boolean]>([
    ['in the client view without an x-view', api(both), {}, false],
    ['turned round with an x-view at the top', api(both, 'x-view: provider\n'), {}, true],
    ['turned round with an x-view under info', api(both).replace('1.0.0', '1.0.0, x-view: provider'), {}, true],
    ['as the portal file says, against its x-view', api(both, 'x-view: provider\n'), { viewpoint: 'client' }, false],
    ['as the portal file says, without an x-view', api(both), { viewpoint: 'provider' }, true],
  ])('%s', async (_, text, options, turned) => {
    expect(await directions({ 'apis/api.yaml': text }, options)).toEqual([
      ['sent/{p}', !turned, turned],
      ['got', turned, !turned],
    ])
  })

  it('with every reference inside it, recursive ones too, and lines of the file that holds a problem', async () => {
    const files = {
      'apis/api.yaml': withPayload('schemas/tree.yaml'),
      'apis/schemas/tree.yaml':
        'type: object\nproperties:\n  children:\n    type: array\n    items:\n      $ref: tree.yaml\n  at:\n    $ref: ../common.yaml#/time\n',
      'apis/common.yaml': 'time:\n  type: string\n  format: date-time\n',
    }
    const { document } = await read(files)
    expect(JSON.parse(JSON.stringify(document))).toEqual(document)
    expect(document).toMatchObject({
      channels: { 'a/b': { subscribe: { message: { payload: { $ref: '#/x-bundled-files/1-schemas_tree.yaml' } } } } },
      'x-bundled-files': {
        '1-schemas_tree.yaml': {
          properties: {
            children: { items: { $ref: '#/x-bundled-files/1-schemas_tree.yaml' } },
            at: { $ref: '#/x-bundled-files/2-common.yaml/time' },
          },
        },
        '2-common.yaml': { time: { type: 'string' } },
      },
    })
    const broken = { ...files, 'apis/common.yaml': 'time:\n  type: strong\n' }
    expect(await problemsOf(broken)).toContain('apis/common.yaml:2 must be equal to one of the allowed values')
  })

  it('when it was exported by an earlier import', async () => {
    const { document } = await read({ 'apis/api.yaml': withPayload('a.yaml'), 'apis/a.yaml': 'type: string\n' })
    const again = await read({ 'apis/api.yaml': JSON.stringify(document) })
    expect(again.document).toEqual(document)
  })

  it('with channels and parameters of other files', async () => {
    const files = {
      'apis/api.yaml': api('  a/{p}/{q}:\n    $ref: channels.yaml#/first\n'),
      'apis/channels.yaml':
        'first:\n  subscribe: {}\n  parameters:\n    p:\n      $ref: parameters/p.yaml\n    q: { schema: { const: only } }\n',
      'apis/parameters/p.yaml': 'schema:\n  $ref: ../values.yaml#/p\n',
      'apis/values.yaml': 'p:\n  type: string\n  enum: [x, y]\n',
    }
    expect((await read(files)).channels).toEqual([
      {
        name: 'a/{p}/{q}',
        clientMayPublish: false,
        clientMaySubscribe: true,
        parameterEnums: { p: ['x', 'y'], q: ['only'] },
      },
    ])
  })

  it('with a parameter that it does not describe: it is unbound', async () => {
    const { channels } = await read({ 'apis/api.yaml': api('  a/{p}:\n    subscribe: {}\n') })
    expect(channels).toMatchObject([{ name: 'a/{p}', parameterEnums: {} }])
  })

  it('with values as they are written, and a warning, where they are no text', async () => {
    const text = api(
      '  a/{p}:\n    subscribe: {}\n    parameters:\n      p:\n        schema:\n          enum:\n            - 1.0\n            - 0x1F\n            - true\n            - x\n',
    )
    const { channels, warnings } = await read({ 'apis/api.yaml': text })
    expect(channels[0]?.parameterEnums).toEqual({ p: ['1.0', '0x1F', 'true', 'x'] })
    expect(warnings.map(({ line }) => line)).toEqual([10, 11, 12])
  })

  it('with a warning where it says more than can be expressed, or refers to payloads of an unknown format', async () => {
    const text = api(
      '  a/{p}x:\n    parameters: { p: { schema: { type: string } } }\n    subscribe:\n      message:\n        schemaFormat: application/vnd.apache.avro;version=1.9.0\n        payload: { type: record, name: R, fields: [] }\n',
    )
    const { warnings } = await read({ 'apis/api.yaml': text })
    expect(warnings.map(({ line, message }) => `${line} ${message}`)).toEqual([
      expect.stringMatching(/^4 Channel `a\/\{p\}x`: text after the wildcard/),
      '8 No schema parser registered for "application/vnd.apache.avro;version=1.9.0"',
    ])
  })

  it.each(['2.0.0', '2.1.0', '2.2.0', '2.3.0', '2.4.0', '2.5.0', '2.6.0'])('in version %s', async (version) => {
    const { version: readVersion } = await read({ 'apis/api.yaml': api('  a/b: {}\n').replace('2.6.0', version) })
    expect(readVersion).toBe(version)
  })
})
