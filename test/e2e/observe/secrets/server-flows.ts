import { expect } from 'vitest'
import { modern, send } from '../../../support/raw.ts'
import { createWatchedBrowser, type WatchedBrowser } from './watched-browser.ts'
import { newSecret, type World } from './world.ts'

/** One thing that people and programs do; it adds the secrets that it has used to those of the world. */
export type SecretFlow = (world: World) => Promise<void>

const tokenOf = ({ ada }: World): string => ada.authorization?.replace('Bearer ', '') ?? ''

/** A call that is refused, the login that it asks for, and the call again. */
const logIn = async (world: World, tool: string): Promise<WatchedBrowser> => {
  const browser = createWatchedBrowser(world.secrets)
  const asked = await world.act(world.ada, tool)
  expect([tool, asked.status]).toEqual([tool, 424])
  const page = await browser.openLink(asked.body.error.data.url, tokenOf(world))
  expect(page.text).toContain('Logged in')
  expect((await world.act(world.ada, tool)).status).toBe(200)
  return browser
}

const byCode: SecretFlow = async world => {
  const { act, ada, peers, origin, secrets } = world
  const browser = await logIn(world, 'far__echo')
  peers.far.expire()
  expect((await act(ada, 'far__echo')).status).toBe(200)
  expect(peers.far.counts.refreshes).toBe(1)
  const [code, state] = [newSecret('code'), newSecret('state')]
  secrets.push(code, state)
  for (const path of ['/oauth/callback', '/oauth/callback/foreign.example'])
    expect((await browser.visit(`${origin}${path}?code=${code}&state=${state}`)).status).toBe(404)
}

/** Over MCP, in both eras: the answers have the link. */
const overMcp: SecretFlow = async ({ ada, origin, secrets, peers, owner, request }) => {
  await request('POST', '/admin/logins/end', owner, { server: 'far', principal: 'ada' })
  expect(peers.far.counts.revocations).toBeGreaterThan(0)
  const params = { name: 'far__echo', arguments: { message: 'hello' } }
  const call = (capabilities: object) => {
    const { headers, body } = modern(1, 'tools/call', params, { capabilities })
    return send(`${origin}/mcp`, { body, headers: { ...headers, ...ada } })
  }
  for (const capabilities of [{}, { elicitation: { url: {} } }]) {
    const { text } = await call(capabilities)
    const link = /\/oauth\/login\/([\w-]+)/.exec(text)?.[1] ?? ''
    expect(link).not.toBe('')
    secrets.push(link, /"requestState":"([^"]+)"/.exec(text)?.[1] ?? '')
  }
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'old', version: '1' } }
  const opened = await send(`${origin}/mcp`, {
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize }),
    headers: { ...ada, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  })
  const session = String(opened.headers['mcp-session-id'])
  secrets.push(session)
  const { text } = await send(`${origin}/mcp`, {
    body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params }),
    headers: {
      ...{ ...ada, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
    },
  })
  expect(text).toContain('/oauth/login/')
}

const stepUp: SecretFlow = async world => {
  const { request, owner, ada, act } = world
  await logIn(world, 'stepping__test_simple_text')
  await logIn(world, 'stepping__echo')
  const ended = await request('POST', '/admin/logins/end', owner, { server: 'stepping', principal: 'ada' })
  expect(ended.body).toEqual({ wasPresent: true, isRevoked: true })
  expect((await act(ada, 'stepping__echo')).status).toBe(424)
}

/** The owner opens and ends the login for a user, with the address that the browser of the user has ended at. */
const byOwner: SecretFlow = async ({ request, owner, secrets }) => {
  const subject = { server: 'stepping', principal: 'ada' }
  const { body: begun } = await request('POST', '/admin/logins/begin', owner, subject)
  secrets.push(begun.id)
  const opened = await request('POST', '/admin/logins/open', owner, { id: begun.id, principal: 'ada' })
  const response = await fetch(opened.body.url, { redirect: 'manual', headers: { cookie: 'user=ada@site' } })
  const ended = { address: response.headers.get('location') ?? '', principal: 'ada' }
  expect((await request('POST', '/admin/logins/finish', owner, ended)).status).toBe(200)
  expect((await request('POST', '/admin/logins/finish', owner, ended)).status).toBe(422) // it was used
}

const machines: SecretFlow = async ({ act, ada, peers }) => {
  const names = ['machine', 'keyed', 'workload', 'file']
  for (const name of names) expect([name, (await act(ada, `${name}__echo`)).status]).toEqual([name, 200])
  peers.machines.expire(true)
  for (const name of names) expect([name, (await act(ada, `${name}__echo`)).status]).toEqual([name, 200])
}

/** An authorization server and a server that repeat what they were sent wherever they can. */
const loud: SecretFlow = async world => {
  const { peers, act, ada, secrets, request, owner } = world
  const json = { 'content-type': 'application/json' }
  const described = (sent: string): string => JSON.stringify({ error: 'invalid_grant', error_description: sent })
  const refusals: Parameters<typeof peers.loud.refuseLoudly>[0][] = [
    (sent, response) => response.writeHead(500, json).end(described(sent)),
    (sent, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${sent}</p>`),
    (sent, response) => response.writeHead(302, { location: `http://127.0.0.1:1/${encodeURIComponent(sent)}` }).end(),
    (sent, response) => response.writeHead(400, json).end(JSON.stringify({ error: sent.split(' ')[0] })),
    (sent, response) => response.writeHead(400, json).end(described(sent)),
  ]
  for (const refusal of refusals) {
    peers.loud.refuseLoudly(undefined)
    await logIn(world, 'loud__echo')
    peers.loud.expire()
    peers.loud.refuseLoudly(refusal)
    expect((await act(ada, 'loud__echo')).status).toBeGreaterThanOrEqual(400) // the refresh is refused
    await request('POST', '/admin/logins/end', owner, { server: 'loud', principal: 'ada' })
    const asked = await act(ada, 'loud__echo')
    const page = await createWatchedBrowser(secrets).openLink(asked.body.error.data.url, tokenOf(world))
    expect(page.text).not.toContain('Logged in') // the code is refused
  }
  expect((await act(ada, 'echo__any')).status).toBeGreaterThanOrEqual(400)
}

/** A user, a model or a server that repeats the secrets of the configuration, and of the login. */
const repeated: SecretFlow = async ({ request, ada, known, peers }) => {
  const token = peers.documents.secrets.findLast(secret => secret.startsWith('at-'))
  const echoed = await request('POST', '/actions/default/documents__echo', ada, { text: `it is ${token}` })
  expect(JSON.stringify(echoed.body)).toContain(token)
  const { pem, header, issuer, configured, machine, workload, reports } = known
  for (const text of [pem, header, issuer, configured, machine, workload, reports]) {
    const { status } = await request('POST', '/actions/default/machine__echo', ada, { text: `it is ${text}` })
    expect(status).toBe(200)
  }
}

/** Flows in which the gateway logs in to servers. */
export const SERVER_FLOWS: Readonly<Record<string, SecretFlow>> = {
  'login by code, with registration and refresh': byCode,
  'logout, and the link over MCP': overMcp,
  'login with a client metadata document': async world => void (await logIn(world, 'documents__echo')),
  'login with a configured client, step-up and revocation': stepUp,
  'login by the owner for a user': byOwner,
  'client credentials with a secret and with a key, JWT bearer': machines,
  'servers that repeat what they were sent': loud,
  'calls and results with secrets in them': repeated,
}
