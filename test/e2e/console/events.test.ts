import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createSecret, hashSecret, type Token } from '../../../src/auth/token.ts'
import { encodeTokens } from '../../../src/auth/token-file.ts'
import { type ConsoleSite, describeConsole } from '../../support/console.ts'

interface FeedEvent {
  readonly kind: string
  readonly data: Record<string, unknown>
}

const open: AbortController[] = []
afterEach(() => {
  for (const abort of open.splice(0)) abort.abort()
})

/** Reads the events; `next` resolves with the first of a kind that has not been taken yet. */
const readEvents = async (site: ConsoleSite, headers: Readonly<Record<string, string>> = {}) => {
  const abort = new AbortController()
  open.push(abort)
  const response = await fetch(`${site.origin}/admin/events`, { headers, signal: abort.signal })
  const events: FeedEvent[] = []
  let isEnded = false
  const read = async (): Promise<void> => {
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const [, kind = '', data = '{}'] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
        if (kind !== '') events.push({ kind, data: JSON.parse(data) as Record<string, unknown> })
      }
    }
  }
  void read()
    .catch(() => {})
    .finally(() => {
      isEnded = true
    })
  const next = async (kind: string): Promise<Record<string, unknown>> => {
    await expect.poll(() => events.some(event => event.kind === kind), { timeout: 5000 }).toBe(true)
    return events.splice(
      events.findIndex(event => event.kind === kind),
      1,
    )[0]?.data as Record<string, unknown>
  }
  return { response, events, next, hasEnded: () => isEnded, leave: () => abort.abort() }
}

const SECRET = createSecret()
const TOKEN: Token = {
  id: 'ann',
  name: 'ann',
  hash: hashSecret(SECRET),
  principal: 'ann',
  workspaces: ['*'],
  created: new Date().toISOString(),
}

describeConsole('the events of the gateway', site => {
  const asOwner = () => ({ authorization: `Bearer ${site.gateway.localSecret}` })

  test('begin with the status, and go on with changes of it', async () => {
    const feed = await readEvents(site)
    expect(feed.response.headers.get('content-type')).toBe('text/event-stream')
    expect(feed.response.headers.get('cache-control')).toBe('no-store')
    expect(await feed.next('status')).toMatchObject({ origin: site.origin, sessions: 0, servers: expect.any(Array) })
    await fetch(`${site.origin}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'ann', version: '1' } },
      }),
    }).then(response => response.text())
    await expect.poll(async () => (await feed.next('status')).sessions, { timeout: 5000 }).toBe(1)
  })

  test('tell of another configuration', async () => {
    const feed = await readEvents(site)
    await feed.next('status')
    await writeFile(site.file, JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } } }))
    const headers = { ...asOwner(), 'content-type': 'application/json' }
    expect((await fetch(`${site.origin}/admin/reload`, { method: 'POST', headers, body: '{}' })).status).toBe(200)
    expect(await feed.next('config')).toEqual({ file: site.file })
  })

  test('are bounded in number of readers', async () => {
    const feeds = await Promise.all(Array.from({ length: 17 }, () => readEvents(site)))
    expect(feeds.map(({ response }) => response.status).toSorted()).toEqual([...new Array(16).fill(200), 429])
    for (const { leave } of feeds) leave()
    await expect
      .poll(
        async () => {
          const feed = await readEvents(site)
          feed.leave()
          return feed.response.status
        },
        { timeout: 5000 },
      )
      .toBe(200)
  })

  test('end with sign-out, and for callers without a token as soon as one is needed', async () => {
    const code = /code=(.+)$/.exec(site.gateway.createConsoleLink().url)?.[1]
    const origin = { origin: site.origin, 'content-type': 'application/json' }
    const signedIn = await fetch(`${site.origin}/admin/session`, {
      method: 'POST',
      headers: origin,
      body: JSON.stringify({ code }),
    })
    const { csrf } = (await signedIn.json()) as { csrf: string }
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
    const [own, other] = await Promise.all([readEvents(site, { cookie }), readEvents(site)])
    await Promise.all([own.next('status'), other.next('status')])
    const headers = { ...origin, cookie, 'x-dragoman-csrf': csrf }
    expect((await fetch(`${site.origin}/admin/session`, { method: 'DELETE', headers })).status).toBe(204)
    await expect.poll(own.hasEnded, { timeout: 5000 }).toBe(true)
    expect(other.hasEnded()).toBe(false)

    await writeFile(join(site.data, 'tokens.json'), encodeTokens([TOKEN]), { mode: 0o600 })
    await expect.poll(other.hasEnded, { timeout: 5000 }).toBe(true)
    const withToken = await readEvents(site, { authorization: `Bearer ${SECRET}` })
    await withToken.next('status')
    expect((await readEvents(site)).response.status).toBe(401)
    await writeFile(join(site.data, 'tokens.json'), encodeTokens([]), { mode: 0o600 })
    await expect.poll(withToken.hasEnded, { timeout: 5000 }).toBe(true)
  })
})
