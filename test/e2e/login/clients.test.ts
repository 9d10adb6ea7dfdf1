import { afterEach, describe, expect, it } from 'vitest'
import { runCli, startTestDaemon } from '../../support/cli.ts'
import { type Asked, type ClientKind, type ClientOptions, type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { type LoginSiteOptions, startLoginSite } from '../../support/login/login-site.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startSse } from '../../support/servers/sdk-v1-sse.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'

const SERVERS = { 'SDK v1': startV1, 'SDK v1 over SSE': startSse, 'SDK v2': startV2 }
type ServerKind = keyof typeof SERVERS
const URL_CAPABLE = { elicitation: { form: {}, url: {} } }

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const kept = <T extends { close(): Promise<unknown> }>(opened: T): T => {
  closing.push(() => opened.close())
  return opened
}

/** A server that takes the tokens of its authorization server only. */
const startSite = async (kind: ServerKind, options: Partial<LoginSiteOptions> = {}) => {
  const server = kept(await SERVERS[kind]())
  return kept(await startLoginSite({ upstream: server.url, ...options }))
}

/** A gateway whose configuration names nothing but URLs. */
const startDaemon = async (urls: Readonly<Record<string, string>>) => {
  const entries = Object.entries(urls).map(([name, url]) => [name, { url }])
  return kept(await startTestDaemon({ mcpServers: Object.fromEntries(entries) }))
}

const connect = async (kind: ClientKind, options: ClientOptions): Promise<TestClient> =>
  kept(await (kind === 'SDK v1' ? connectV1(options) : connectV2(kind, options)))

/** A user who opens every link that the client shows, and accepts. */
const opening = (user: string) => {
  const shown: string[] = []
  const answer = async ({ params }: Asked): Promise<Record<string, unknown>> => {
    const { status } = await createBrowser(user).open(String(params.url))
    shown.push(`${status}`)
    return { action: 'accept' }
  }
  return { answer, shown }
}

const linkIn = (text: string): string => /http:\S+\/oauth\/login\/\S+/.exec(text)?.[0] ?? 'no link'

describe.each<ServerKind>(['SDK v1', 'SDK v1 over SSE', 'SDK v2'])('a server (%s) that wants a login', kind => {
  it.each<[ClientKind, boolean]>([
    ['SDK v1', false],
    ['SDK v1', true],
    ['SDK v2 modern', false],
    ['SDK v2 legacy', false],
  ])('F7: asks the user of a client (%s, SSE: %s) for it, and goes on', async (client, sse) => {
    const site = await startSite(kind)
    const { origin } = await startDaemon({ far: site.url })
    const { answer, shown } = opening('ada')
    const url = `${origin}/mcp${sse ? '/default/sse' : ''}`
    const connected = await connect(client, { url, sse, capabilities: URL_CAPABLE, answer })
    expect(await connected.toolNames()).toEqual(['login'])
    expect(await connected.promptNames()).toEqual([])
    if (connected.era === 'modern') await connected.watch('test://watched-resource')
    expect(textOf(await connected.call('echo', { text: 'hello' }))).toContain('hello')
    expect(shown).toEqual(['200'])
    await connected.notices.next('notifications/tools/list_changed')
    expect(await connected.toolNames()).toContain('echo')
    expect(await connected.promptNames()).toContain('test_simple_prompt')
    expect(await connected.read('test://static-text')).toContain('static')
    expect(new Set(site.admitted.map(({ user }) => user))).toEqual(new Set(['ada']))
    expect(site.counts.registrations).toBe(1)
  })

  it('F7: gives a client that cannot open links the link, and works after it', async () => {
    const site = await startSite(kind)
    const { origin, data } = await startDaemon({ far: site.url })
    for (const client of ['SDK v1', 'SDK v2 modern'] as const) {
      const connected = await connect(client, { url: `${origin}/mcp`, capabilities: {} })
      const refused = await connected.call('echo', { text: 'x' })
      expect(refused.isError).toBe(true)
      expect(textOf(refused)).toMatch(/^Server "far" needs a login\. Open http\S+ in a browser within 10 minutes/)
      await expect(connected.prompt('test_simple_prompt')).rejects.toThrow('needs a login')
      const page = await createBrowser('ada').open(linkIn(textOf(refused)))
      expect(page).toMatchObject({ status: 200, text: expect.stringContaining('Logged in') })
      expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'/)
      expect(textOf(await connected.call('echo', { text: 'works' }))).toContain('works')
      expect((await runCli(['logout', 'far', '--data', data])).stdout).toContain('Its tokens are revoked')
    }
  })
})
