import { expect, it } from 'vitest'
import { Secret } from '../../src/domain/secret.ts'
import { LoginGate } from '../../src/login-gate.ts'
import { currentActivity, withActivity } from '../../src/observability/activity.ts'

it('a login belongs to who asked for it, also when another makes room for it', async () => {
  const seen: (string | undefined)[] = []
  const gate = new LoginGate({
    messaging: {
      host: 'localhost',
      protocols: [{ protocol: 'mqtt', port: 1 }],
      logins: { off: [], maxConcurrent: 1, maxPerSecond: 1000 },
    },
    msgVpnName: 'vpn',
    controls: [],
    now: Date.now,
    timeoutMs: 1_000,
    controlEveryMs: 1_000,
    login: {
      async probe() {
        seen.push(currentActivity().jobId)
        return { outcome: 'accepted' }
      },
    },
  })
  const target = gate.targets.get('mqtt')
  if (target === undefined) throw new Error('the gate has no target')
  const attempt = { username: 'client', password: new Secret('password') }
  const jobs = ['job-1', 'job-2', 'job-3']
  await Promise.all(jobs.map((jobId) => withActivity({ jobId }, () => gate.login(target, attempt, null))))
  expect(seen).toEqual(jobs)
})
