import { expect, onTestFinished, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { modern, send } from '../../support/raw.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'

const DEMO: ServerConfig = { name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' }

/** Three replicas before a server that wants a login, and another one. */
const start = async (startServer: typeof startV1) => {
  const server = await startServer()
  const site = await startLoginSite({ upstream: server.url })
  const far: ServerConfig = {
    ...{ name: 'far', disabled: false, kind: 'remote', url: site.url, type: 'auto', headers: {} },
    ...{ era: 'auto', timeoutMs: 10_000 },
  }
  const { replicas, close } = await startReplicas({ size: 3, entry: () => far, others: [DEMO] })
  onTestFinished(async () => {
    await close()
    await site.close()
    await server.close()
  })
  return { site, replicas: replicas as [TestReplica, TestReplica, TestReplica] }
}

const call = async ({ url }: TestReplica, params: Record<string, unknown>) =>
  (await send(url, modern(1, 'tools/call', params, { capabilities: { elicitation: { url: {} } } }))).json as {
    error?: object
    result?: { requestState?: string; inputRequests?: { login?: { params: { url: string } } } }
  }

const toolsOf = async ({ url }: TestReplica): Promise<string[]> => {
  const { json } = await send(url, modern(1, 'tools/list'))
  return (json as { result: { tools: { name: string }[] } }).result.tools.map(({ name }) => name)
}

/** Asks for the login at the first replica, logs in, and returns what the client repeats its call with. */
const logIn = async (replica: TestReplica, name: string) => {
  const params = { name, arguments: { text: 'hello', message: 'hello' } }
  const { result } = await call(replica, params)
  const page = await createBrowser('ada').open(result?.inputRequests?.login?.params.url ?? '')
  expect(page.text).toContain('Logged in')
  return { ...params, requestState: result?.requestState, inputResponses: { login: { action: 'accept' } } }
}

test.each([
  ['SDK v1', startV1],
  ['SDK v2', startV2],
])('a retry of the tool "login" of one of two servers (%s) is answered by every replica', async (_, startServer) => {
  const { replicas } = await start(startServer)
  const [name] = (await toolsOf(replicas[0])).filter(each => each.endsWith('login'))
  const retry = await logIn(replicas[0], name ?? '')
  const text = 'You are logged in to server "far". Its tools are listed now.'
  // The last one was not asked for anything before, and has listed nothing.
  for (const replica of [...replicas].reverse())
    expect(await call(replica, retry)).toMatchObject({ result: { content: [{ text }] } })
  for (const replica of replicas) {
    const names = await toolsOf(replica)
    expect(names).toEqual(expect.arrayContaining(['far__echo', 'demo__example-ping']))
    expect(names).not.toContain(name)
  }
})

test('a retry of a call that waited for a login is made by a replica that did not ask', async () => {
  const { site, replicas } = await start(startV1)
  const [first, , third] = replicas
  const retry = await logIn(first, 'far__echo')
  expect(await call(third, retry)).toMatchObject({ result: { content: [{ type: 'text' }] } })
  expect(site.admitted.filter(({ method }) => method === 'tools/call')).toMatchObject([{ user: 'ada' }])
})
