import { expect, it } from 'vitest'
import { databaseStartError, directoryError } from '../../src/store/embedded-postgres-errors.ts'

const said: { title: string; detail: string; code: string; hint: string }[] = [
  {
    title: 'a full disk',
    detail: 'FATAL:  could not extend file "base/1/2691": wrote only 4096 of 8192 bytes\nHINT:  Check free disk space.',
    code: 'DISK_FULL',
    hint: 'Free some disk space',
  },
  {
    title: 'a full disk, by the operating system',
    detail: "ENOSPC: no space left on device, write '/data/postgres/cluster.json'",
    code: 'DISK_FULL',
    hint: 'Free some disk space',
  },
  {
    title: 'a user without a passwd entry',
    detail: 'initdb: could not look up effective user ID 12345: user does not exist',
    code: 'DATABASE_USER_UNKNOWN',
    hint: '/etc/passwd',
  },
  {
    title: 'another owner',
    detail: 'FATAL:  data directory "/data/postgres/data" has wrong ownership',
    code: 'DATA_DIRECTORY_UNUSABLE',
    hint: 'Run as the user that owns',
  },
  {
    title: 'a closed directory',
    detail: "EACCES: permission denied, mkdir '/data'",
    code: 'DATA_DIRECTORY_UNUSABLE',
    hint: 'KEYMESH_DATA_DIR',
  },
  {
    title: 'a machine that cannot run the programs',
    detail: 'spawn /package/native/bin/initdb ENOENT',
    code: 'EMBEDDED_POSTGRES_UNAVAILABLE',
    hint: 'glibc',
  },
  { title: 'anything else', detail: 'FATAL:  odd', code: 'DATABASE_START', hint: 'DATABASE_URL' },
]

it.each(said)('says what to do about $title', ({ detail, code, hint }) => {
  const error = databaseStartError('start', detail)
  expect(error).toMatchObject({ code, fate: 'stop', hint: expect.stringContaining(hint) })
  expect(error.message).toContain(detail.split('\n').at(-1))
})

it('keeps an error that is clear already', () => {
  const clear = databaseStartError('start', 'No space left on device')
  expect(directoryError('use', '/data', clear)).toBe(clear)
})
