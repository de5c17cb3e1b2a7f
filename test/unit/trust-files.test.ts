import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { TrustFiles } from '../../src/login/trust-files.ts'

const files = new TrustFiles()
afterEach(() => files.close())

it('writes each content once, for this user alone', () => {
  const path = files.pathOf('one')
  expect(readFileSync(path, 'utf8')).toBe('one')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
  expect(files.pathOf('one')).toBe(path)
  const other = files.pathOf('two')
  expect(other).not.toBe(path)
  expect(dirname(other)).toBe(dirname(path))
})

it('writes again what somebody swept away', () => {
  const path = files.pathOf('one')
  rmSync(path)
  expect(readFileSync(files.pathOf('one'), 'utf8')).toBe('one')
  rmSync(dirname(path), { recursive: true })
  expect(readFileSync(files.pathOf('one'), 'utf8')).toBe('one')
})

it('removes everything, on request and with the process, and begins anew', () => {
  const listeners = process.listeners('exit')
  const path = files.pathOf('one')
  const added = process.listeners('exit').filter((listener) => !listeners.includes(listener))
  expect(added).toHaveLength(1)
  added[0]?.(0)
  expect(existsSync(dirname(path))).toBe(false)
  const again = files.pathOf('one')
  files.close()
  expect(existsSync(dirname(again))).toBe(false)
  expect(process.listeners('exit')).toEqual(listeners)
})
