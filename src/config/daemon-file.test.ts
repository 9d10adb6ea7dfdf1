import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { announceDaemon, claimStart, findDaemon, withdrawDaemon } from './daemon-file.ts'

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'dragoman-daemon-'))
})
afterEach(() => rmSync(data, { recursive: true }))

const DEAD = 2 ** 22 + 1 // beyond what Linux gives out
const daemon = (pid: number) => ({ origin: 'http://127.0.0.1:1', pid, token: 'secret' })

test('a daemon that announced itself is found while it lives, by nobody but its user', async () => {
  await announceDaemon(data, daemon(process.pid))
  expect(await findDaemon(data)).toEqual(daemon(process.pid))
  expect(statSync(join(data, 'daemon.json')).mode & 0o777).toBe(0o600)
  await announceDaemon(data, daemon(DEAD))
  expect(await findDaemon(data)).toBeUndefined()
})

test.each(['', '{', 'null', '[]', '{"origin":5}'])('a file that holds %s is no daemon', async text => {
  writeFileSync(join(data, 'daemon.json'), text)
  expect(await findDaemon(data)).toBeUndefined()
})

test('an announcement is taken back by the one who made it', async () => {
  await announceDaemon(data, daemon(process.pid))
  await withdrawDaemon(data, DEAD)
  expect(await findDaemon(data)).toBeDefined()
  await withdrawDaemon(data, process.pid)
  expect(await findDaemon(data)).toBeUndefined()
})

test('one at a time starts a daemon; a dead one’s claim is void', async () => {
  const release = await claimStart(data)
  expect(release).toBeDefined()
  expect(await claimStart(data)).toBeUndefined()
  await release?.()
  writeFileSync(join(data, 'daemon.starting'), String(DEAD))
  const again = await claimStart(data)
  expect(readFileSync(join(data, 'daemon.starting'), 'utf8')).toBe(String(process.pid))
  await again?.()
})
