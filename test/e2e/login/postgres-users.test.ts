import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { openPostgres } from '../../../src/stores/postgres.ts'
import { openState } from '../../../src/stores/state/open-state.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { startReplicas } from '../../support/replicas.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { createToken, newDataDirectory } from '../auth/guarded.ts'
import { act, openAs, remote, tokenOf } from './rest-user.ts'

const postgres = inject('postgresUrl')
const name = `users_${randomBytes(6).toString('hex')}`
const url = (postgres ?? '').replace(/\/[^/?]+(?=\?|$)/, `/${name}`)

const onPostgres = async (statement: string): Promise<void> => {
  if (postgres === undefined) return
  const database = openPostgres({ url: postgres })
  await database.exec(statement).finally(() => database.close())
}
beforeAll(() => onPostgres(`CREATE DATABASE ${name}`))
afterAll(() => onPostgres(`DROP DATABASE ${name} WITH (FORCE)`))

const STORES = [
  { store: 'memory', open: undefined },
  ...(postgres === undefined
    ? []
    : [{ store: 'PostgreSQL', open: () => openState({ kind: 'postgres', url }, SILENT) }]),
]

describe.each(STORES)('three replicas on $store', ({ open }) => {
  test('two users of one server never use the token of the other, at any of them, and each is refreshed once', async () => {
    const server = await startV1()
    const site = await startLoginSite({ upstream: server.url })
    onTestFinished(async () => {
      await site.close()
      await server.close()
    })
    const data = await newDataDirectory()
    const users = {
      ada: await createToken(data, { principal: 'ada' }),
      ben: await createToken(data, { principal: 'ben' }),
    }
    const { replicas, close } = await startReplicas({
      size: 3,
      data,
      entry: () => remote(site.url),
      ...(open && { openState: open }),
    })
    onTestFinished(async () => {
      await close()
      await rm(data, { recursive: true })
    })
    const origins = replicas.map(({ gateway }) => gateway.origin) as [string, string, string]
    const [first, second] = origins
    for (const [name, token] of Object.entries(users)) {
      const link = (await act(first, token, 'echo', { text: name })).body.error?.data.url ?? ''
      // The page is opened at another replica than the call was sent to, and the callback comes to the first one.
      const page = await openAs(createBrowser(`${name}@site`), link.replace(first, second), tokenOf(token))
      expect(page.text).toContain('Logged in')
    }
    for (const origin of origins)
      for (const token of Object.values(users))
        await expect.poll(async () => (await act(origin, token, 'echo', { text: 'x' })).status).toBe(200)
    const callAll = async (): Promise<void> => {
      const before = site.admitted.length
      const calls = Array.from({ length: 60 }, async (_, i) => {
        const name = i % 2 ? 'ada' : 'ben'
        const answer = await act(origins[Math.floor(i / 2) % 3] ?? first, users[name], 'echo', { text: `of ${name}` })
        expect(answer).toMatchObject({ status: 200 })
      })
      await Promise.all(calls)
      const called = site.admitted.slice(before).filter(({ method }) => method === 'tools/call')
      expect(called).toHaveLength(60)
      for (const { user, text } of called) expect(text).toContain(`of ${user.replace('@site', '')}`)
    }
    await callAll()
    expect(site.counts.refreshes).toBe(0)
    site.expire()
    await callAll() // 30 calls of each user are refused, at three replicas at the same time
    expect(site.counts.refreshes).toBe(2)
  })
})
