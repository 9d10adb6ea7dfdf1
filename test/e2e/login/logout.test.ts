import { rm } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { rpcInitialize, rpcRequest } from '../../support/front.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { openStream, send } from '../../support/raw.ts'
import { startReplicas } from '../../support/replicas.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { type Created, createToken, newDataDirectory } from '../auth/guarded.ts'
import { act, openAs, remote, tokenOf } from './rest-user.ts'

const DEMO: ServerConfig = { name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' }

test('the logout of one user costs another user no call, also if lists are being fetched', async () => {
  const server = await startV1()
  const site = await startLoginSite({ upstream: server.url })
  const data = await newDataDirectory()
  const [ada, ben] = [await createToken(data, { principal: 'ada' }), await createToken(data, { principal: 'ben' })]
  const entry = { ...remote(site.url), name: 'far' }
  const { replicas, close } = await startReplicas({ size: 1, data, entry: () => entry, others: [DEMO] })
  onTestFinished(async () => {
    await close()
    await site.close()
    await server.close()
    await rm(data, { recursive: true })
  })
  const [{ gateway } = { gateway: undefined }] = replicas
  if (!gateway) throw new Error('no gateway')
  const { origin, localSecret } = gateway
  const call = (user: Created) => act(origin, user, 'far__echo', { text: 'x' })
  const logIn = async (user: Created, name: string): Promise<void> => {
    const link = (await call(user)).body.error?.data.url ?? ''
    expect((await openAs(createBrowser(`${name}@site`), link, tokenOf(user))).text).toContain('Logged in')
    expect((await call(user)).status).toBe(200)
  }
  await logIn(ben, 'ben')
  // A session of the user who logs out: its client is told of lists that have changed, and they are fetched for that.
  const body = rpcInitialize('2025-11-25')
  const opened = await send(`${origin}/mcp`, { headers: ada.headers, body })
  const session = { ...ada.headers, 'mcp-session-id': String(opened.headers['mcp-session-id']) }
  const listening = await openStream(`${origin}/mcp`, {
    method: 'GET',
    headers: { ...session, accept: 'text/event-stream' },
  })
  onTestFinished(() => listening.close())
  const list = rpcRequest(1, 'tools/list', {})
  for (let round = 0; round < 3; round++) {
    await logIn(ada, 'ada')
    expect((await send(`${origin}/mcp`, { headers: session, body: list })).json).toHaveProperty('result')
    const ended = await fetch(`${origin}/admin/logins/end`, {
      method: 'POST',
      headers: { authorization: `Bearer ${localSecret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ server: 'far', principal: 'ada' }),
    })
    expect(await ended.json()).toEqual({ wasPresent: true, isRevoked: true })
    const answers = await Promise.all([call(ada), call(ben), call(ada), call(ben)])
    expect(answers.map(({ status }) => status)).toEqual([424, 200, 424, 200])
  }
})
