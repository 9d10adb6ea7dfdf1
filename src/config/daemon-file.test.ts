import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { announceDaemon, claimStart, findDaemon, withdrawDaemon } from './daemon-file.ts'

let data: string
let origin: string
let type: string
const healthy = createServer((_, response) => void response.writeHead(200, { 'content-type': type }).end('{}'))
beforeAll(async () => {
  await new Promise<void>(resolve => healthy.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(healthy.address() as AddressInfo).port}`
})
afterAll(() => void healthy.close())
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'dragoman-daemon-'))
  type = 'application/json'
})
afterEach(() => rmSync(data, { recursive: true }))

const DEAD = 2 ** 22 + 1 // beyond what Linux gives out
const daemon = (pid: number) => ({ origin, pid, token: 'secret' })

test('an announced daemon is found while it runs, by its own user only', async () => {
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

test('only the daemon that wrote the announcement removes it', async () => {
  await announceDaemon(data, daemon(process.pid))
  await withdrawDaemon(data, DEAD)
  expect(await findDaemon(data)).toBeDefined()
  await withdrawDaemon(data, process.pid)
  expect(await findDaemon(data)).toBeUndefined()
})

test('a daemon that removes its announcement announces the one it replaced, if that still runs', async () => {
  const displaced = { ...daemon(process.pid), token: 'older' }
  await announceDaemon(data, daemon(process.pid))
  await withdrawDaemon(data, process.pid, displaced)
  expect(await findDaemon(data)).toEqual(displaced)
  await withdrawDaemon(data, process.pid, { ...displaced, pid: DEAD })
  expect(readdirSync(data)).toEqual([])
})

test('one process at a time starts a daemon; the lock of a dead process is stale', async () => {
  const release = await claimStart(data)
  expect(release).toBeDefined()
  expect(await claimStart(data)).toBeUndefined()
  await release?.()
  writeFileSync(join(data, 'daemon.starting'), String(DEAD))
  const again = await claimStart(data)
  expect(readFileSync(join(data, 'daemon.starting'), 'utf8')).toBe(String(process.pid))
  await again?.()
})

test('a daemon that was killed is not found again in the process that has its number now', async () => {
  await announceDaemon(data, { ...daemon(process.pid), origin: 'http://127.0.0.1:1' })
  expect(await findDaemon(data)).toBeUndefined()
  await announceDaemon(data, daemon(process.pid))
  type = 'text/html' // another program has its port
  expect(await findDaemon(data)).toBeUndefined()
})

test.each(['', String(process.pid)])('an old lock with the text "%s" does not prevent a start', async text => {
  writeFileSync(join(data, 'daemon.starting'), text)
  expect(await claimStart(data)).toBeUndefined()
  const longAgo = Date.now() / 1000 - 120
  utimesSync(join(data, 'daemon.starting'), longAgo, longAgo)
  expect(await claimStart(data)).toBeDefined()
  expect(readdirSync(data)).toEqual(['daemon.starting'])
})

test('of many processes that find the lock of a dead one, one gets the lock', async () => {
  for (let round = 0; round < 20; round++) {
    writeFileSync(join(data, 'daemon.starting'), String(DEAD))
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimStart(data)))
    expect(claims.filter(claim => claim !== undefined).length).toBeLessThanOrEqual(1)
    rmSync(join(data, 'daemon.starting'), { force: true })
  }
})
