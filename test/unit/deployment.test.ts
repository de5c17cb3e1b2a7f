import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { settings } from '../../src/config.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(join(repository, path), 'utf8')

const manifests = readdirSync(join(repository, 'deploy/kubernetes')).map((name) => `deploy/kubernetes/${name}`)
const files = ['Dockerfile', '.dockerignore', 'docker-compose.yml', 'deploy/new-secrets.sh', ...manifests]

const SECRET_SETTINGS = [
  'DATABASE_URL',
  'REDIS_URL',
  'KEYMESH_KEYS',
  'KEYMESH_ADMIN_PASSWORD',
  'KEYMESH_APIM_TOKEN',
  'KEYMESH_AUTH_PASSWORD',
  'KEYMESH_TOKEN',
]

describe.each(files)('%s', (path) => {
  const text = read(path)

  it('names only settings that the program has', () => {
    const known = new Set(settings.map(({ name }) => name))
    const named = [...text.matchAll(/\bKEYMESH_[A-Z0-9_]+\b/g)].map(([name]) => name)
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })

  it('has no password, key or token in it', () => {
    expect(text).not.toMatch(/:\/\/[^:/\s$@]+:(?!\$\{)[^@\s]+@/)
    expect(text).not.toMatch(/password[^\n]*[:=]\s*["']?(?!\$\{|\$\(|""|true|false)[A-Za-z0-9]{6,}["']?$/im)
    expect(text).not.toMatch(/[A-Za-z0-9_-]{40,}/)
  })
})

describe('the image', () => {
  const text = read('Dockerfile')
  const lines = text.split('\n')
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM')))

  it('runs as a numbered user who is not root, and says how it is', () => {
    expect(last.filter((line) => line.startsWith('USER'))).toEqual(['USER 1000:1000'])
    expect(last.some((line) => line.startsWith('HEALTHCHECK'))).toBe(true)
    expect(last).toContain('ENTRYPOINT ["node", "/app/dist/src/main.js"]')
  })

  it('holds libraries without those of development, and what was built, not the sources', () => {
    expect(text).toContain('npm ci --omit=dev')
    expect(text).toContain('RUN npm run build')
    expect(last.filter((line) => line.startsWith('COPY'))).toEqual([
      'COPY --from=libraries /app/node_modules node_modules',
      'COPY --from=build /app/dist dist',
      'COPY package.json LICENSE ./',
      'COPY examples examples',
    ])
  })

  it('is built from files that the context holds', () => {
    const [everything, ...kept] = read('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    expect(everything).toBe('*')
    const context = kept.map((line) => line.replace(/^!/, ''))
    expect(context.filter((path) => !existsSync(join(repository, path)))).toEqual([])
    const copied = lines.filter((line) => /^COPY (?!--from)/.test(line)).flatMap((line) => line.split(' ').slice(1, -1))
    expect(copied.filter((path) => !context.includes(path))).toEqual([])
  })

  it('runs what package.json calls the program', () => {
    const { bin } = z.object({ bin: z.object({ keymesh: z.string() }) }).parse(JSON.parse(read('package.json')))
    expect(text).toContain(`ENTRYPOINT ["node", "/app/${bin.keymesh}"]`)
    const { engines } = z.object({ engines: z.object({ node: z.string() }) }).parse(JSON.parse(read('package.json')))
    const [, major = ''] = /NODE_IMAGE=node:(\d+)/.exec(text) ?? []
    expect(Number(major)).toBeGreaterThanOrEqual(Number(/\d+/.exec(engines.node)?.[0]))
  })
})

const serviceSchema = z.looseObject({
  environment: z.record(z.string(), z.string()).optional(),
  healthcheck: z.looseObject({ test: z.array(z.string()) }).optional(),
  ports: z.array(z.string()).default([]),
  profiles: z.array(z.string()).optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).optional(),
  stop_grace_period: z.string().optional(),
})

describe('docker-compose.yml', () => {
  const { services } = z
    .object({ services: z.record(z.string(), serviceSchema) })
    .parse(parse(read('docker-compose.yml'), { merge: true }))

  it('has the service, its servers, and a broker on demand', () => {
    expect(Object.keys(services)).toEqual(['keymesh', 'postgres', 'redis', 'broker'])
    expect(services.broker?.profiles).toEqual(['broker'])
    expect(services.keymesh?.depends_on).toEqual({
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
    })
  })

  it('takes every secret from outside and stops when there is none', () => {
    const secret = /PASSWORD|KEYS|DATABASE_URL|password/
    for (const { environment = {} } of Object.values(services)) {
      for (const [name, value] of Object.entries(environment)) {
        if (secret.test(name)) expect(value, name).toMatch(/\$\{[A-Z_]+:\?/)
      }
    }
  })

  it('has a health check for each server, and publishes ports on the loopback only', () => {
    for (const [name, service] of Object.entries(services)) {
      // Keymesh has that of its image.
      if (name !== 'keymesh') expect(service.healthcheck?.test.length, name).toBeGreaterThan(1)
      for (const port of service.ports) expect(port, name).toMatch(/^(127\.0\.0\.1:|\$\{PUBLISH:-127\.0\.0\.1:)/)
    }
  })

  it('gets every value that it requires from deploy/new-secrets.sh', () => {
    const required = new Set([...read('docker-compose.yml').matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name))
    const written = new Set([...read('deploy/new-secrets.sh').matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name))
    expect(written).toEqual(required)
  })
})

const probeSchema = z.looseObject({ httpGet: z.object({ path: z.string(), port: z.string() }) })
const containerSchema = z.looseObject({
  image: z.string(),
  env: z.array(z.object({ name: z.string(), value: z.string() })),
  envFrom: z.array(z.looseObject({})),
  ports: z.array(z.object({ name: z.string(), containerPort: z.number() })),
  startupProbe: probeSchema,
  readinessProbe: probeSchema,
  livenessProbe: probeSchema,
  securityContext: z.looseObject({}),
  resources: z.object({ requests: z.record(z.string(), z.string()), limits: z.record(z.string(), z.string()) }),
})
const deploymentSchema = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({
    replicas: z.number(),
    strategy: z.looseObject({ rollingUpdate: z.object({ maxUnavailable: z.number(), maxSurge: z.number() }) }),
    template: z.looseObject({
      spec: z.looseObject({
        terminationGracePeriodSeconds: z.number(),
        securityContext: z.looseObject({ runAsNonRoot: z.boolean(), runAsUser: z.number() }),
        containers: z.tuple([containerSchema]),
      }),
    }),
  }),
})

describe('the Kubernetes manifests', () => {
  const objects = manifests.flatMap((path) =>
    parseAllDocuments(read(path)).map((document) => {
      expect(document.errors, path).toEqual([])
      return z.looseObject({ kind: z.string() }).parse(document.toJS())
    }),
  )
  const ofKind = (kind: string) => objects.filter((each) => each.kind === kind)
  const deployments = ofKind('Deployment').map((each) => deploymentSchema.parse(each))
  const kustomization = z
    .looseObject({
      resources: z.array(z.string()),
      configMapGenerator: z.array(z.object({ name: z.string(), literals: z.array(z.string()) })),
    })
    .parse(ofKind('Kustomization')[0])

  it('list every file but the example of the secret', () => {
    const others = ['kustomization.yaml', 'secret.example.yaml']
    const listed = kustomization.resources.map((name) => `deploy/kubernetes/${name}`)
    expect(listed.toSorted()).toEqual(
      manifests.filter((path) => !others.some((name) => path.endsWith(name))).toSorted(),
    )
  })

  it('run each role by itself, all of them together the whole service', () => {
    const roles = deployments.map(({ metadata, spec }) => {
      const [container] = spec.template.spec.containers
      const role = container.env.find(({ name }) => name === 'KEYMESH_ROLES')?.value
      expect(metadata.name).toBe(`keymesh-${role}`)
      expect(spec.replicas).toBeGreaterThan(1)
      return role
    })
    expect(roles).toEqual(['api', 'scheduler', 'worker'])
    expect(ofKind('PodDisruptionBudget')).toHaveLength(3)
  })

  it.each(deployments.map((each) => [each.metadata.name, each] as const))('harden and probe %s', (_name, { spec }) => {
    const pod = spec.template.spec
    const [container] = pod.containers
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(container.startupProbe.httpGet.path).toBe('/healthz')
    expect(container.livenessProbe.httpGet.path).toBe('/healthz')
    expect(container.readinessProbe.httpGet.path).toBe('/readyz')
    const ports = new Map(container.ports.map(({ name, containerPort }) => [name, containerPort]))
    const settled = new Map(
      kustomization.configMapGenerator.flatMap(({ literals }) =>
        literals.map((literal): [string, string] => {
          const equals = literal.indexOf('=')
          return [literal.slice(0, equals), literal.slice(equals + 1)]
        }),
      ),
    )
    expect(String(ports.get('metrics'))).toBe(settled.get('KEYMESH_METRICS_PORT'))
    for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
      expect(ports.has(probe.httpGet.port)).toBe(true)
    }
    // A worker may take 20 seconds for its jobs, the API 10 for its calls.
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(35)
    expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 })
    expect(container.resources.limits.memory).toBeDefined()
  })

  it('take secrets from one secret, whose example is empty', () => {
    const [secret] = ofKind('Secret').map((each) =>
      z
        .looseObject({
          metadata: z.object({ name: z.string(), namespace: z.string() }),
          stringData: z.record(z.string(), z.string()),
        })
        .parse(each),
    )
    for (const [name, value] of Object.entries(secret?.stringData ?? {})) {
      expect(SECRET_SETTINGS).toContain(name)
      expect(value).toBe('')
    }
    const literals = kustomization.configMapGenerator.flatMap(({ literals }) => literals)
    expect(literals.filter((literal) => SECRET_SETTINGS.some((name) => literal.startsWith(`${name}=`)))).toEqual([])
    for (const { spec } of deployments) {
      const [container] = spec.template.spec.containers
      expect(container.envFrom).toContainEqual({ secretRef: { name: secret?.metadata.name } })
    }
  })
})
