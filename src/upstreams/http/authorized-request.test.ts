import { describe, expect, test } from 'vitest'
import { connectScripted } from '../../../test/support/remote-upstream.ts'
import {
  callerOf,
  exchangeWith,
  legacy,
  modern,
  result,
  type Script,
  scriptedServer,
  sendJson,
} from '../../../test/support/scripted-server.ts'
import type { RefusalOutcome, ServerCredentials, TokenRefusal } from '../../protocol/oauth.ts'

const LOGIN: RefusalOutcome = {
  kind: 'login',
  text: 'needs a login. Open http://gw/oauth/login/1 in a browser within 10 minutes, then call again.',
  link: { id: '1', url: 'http://gw/oauth/login/1', expires: 0 },
}

/** Credentials of the gateway, so that one upstream serves all callers. */
const credentials = (given: { token?: string | undefined; outcomes?: RefusalOutcome[] }) => {
  const refusals: TokenRefusal[] = []
  const state = { token: given.token, outcomes: given.outcomes ?? [] }
  const own: ServerCredentials = {
    bearerOf: () => state.token,
    rejected: async (_, refusal) => {
      refusals.push(refusal)
      return state.outcomes.shift() ?? LOGIN
    },
    onChanged: () => () => {},
  }
  const logins = { credentials: own, isPersonal: false, demand: { isKnown: false, record: () => {} } }
  return { state, refusals, logins }
}

const caller = callerOf()
const answer: Script = ({ body }, response) => {
  if (body.id === undefined) response.writeHead(202).end()
  else sendJson(response, result(body.id, { resultType: 'complete', content: [] }))
}

/** Takes this token only; `status` and `challenge` of its refusals. */
const takes =
  (token: string, script: Script, challenge = 'Bearer', status = 401): Script =>
  (arrived, response) => {
    if (arrived.headers.authorization === `Bearer ${token}`) return script(arrived, response)
    response.writeHead(status, { 'www-authenticate': challenge, 'content-type': 'application/json' })
    response.end(JSON.stringify({ error_description: 'who are you' }))
  }

describe('a refusal', () => {
  const endless: Script = (_, response) => {
    response.writeHead(401, { 'www-authenticate': 'Bearer' })
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024)));
    }
    response.on('drain', more)
    more()
  }
  const broken: Script = (_, response) => {
    response.writeHead(401, { 'www-authenticate': 'Bearer', 'content-length': 100 })
    response.write('{')
    setImmediate(() => response.destroy())
  }

  test.each([
    ['never ends', endless],
    ['breaks off', broken],
  ])('whose body %s asks for the login', async (_, refuse) => {
    const { logins } = credentials({})
    const script = modern(answer)
    const { upstream } = await connectScripted(
      (arrived, response) => (arrived.body.method === 'tools/call' ? refuse : script)(arrived, response),
      {},
      { logins },
    )
    const call = exchangeWith(await upstream.open(caller), 'tools/call')
    expect((await call.failure()).data).toMatchObject({ reason: 'login_required' })
  })
})

describe('a request with an access token', () => {
  test('is sent with the token of that moment, in every dialect', async () => {
    for (const script of [modern(answer), legacy(answer)]) {
      const { logins, state } = credentials({ token: 'first' })
      const { server, upstream } = await connectScripted(script, {}, { logins })
      await exchangeWith(await upstream.open(caller), 'tools/call').result()
      state.token = 'second'
      await exchangeWith(await upstream.open(caller), 'tools/call').result()
      const calls = server.of('tools/call').map(({ headers }) => headers.authorization)
      expect(calls).toEqual(['Bearer first', 'Bearer second'])
      const before = server.arrivals.slice(0, server.arrivals.indexOf(server.of('tools/call')[1] as never))
      expect(new Set(before.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer first']))
    }
  })

  test('waits for a token that is being refreshed, and is not sent if it is cancelled meanwhile', async () => {
    let give: (token: string) => void = () => {}
    const { logins, state } = credentials({ token: 'a' })
    const { server, upstream } = await connectScripted(modern(answer), {}, { logins })
    const peer = await upstream.open(caller)
    const refreshed = new Promise<string>(resolve => {
      give = resolve
    })
    Object.assign(logins.credentials, { bearerOf: () => refreshed })
    const [kept, cancelled] = [exchangeWith(peer, 'tools/call'), exchangeWith(peer, 'tools/call')]
    cancelled.abort.abort({ kind: 'cancelled' })
    give('b')
    await kept.result()
    expect(server.of('tools/call')).toHaveLength(1)
    expect(state.outcomes).toEqual([])
  })

  test('is repeated with the same bytes, at most twice', async () => {
    const { logins, refusals, state } = credentials({ token: 'old' })
    const { server, upstream } = await connectScripted(modern(takes('new', answer)), {}, { logins })
    const peer = await upstream.open(caller)
    state.outcomes = [{ kind: 'retry' }, { kind: 'retry' }, { kind: 'retry' }]
    const { data } = await exchangeWith(peer, 'tools/call', { params: { name: 'x' } }).failure()
    expect(data).toMatchObject({ reason: 'upstream_auth' })
    const texts = server.of('tools/call').map(({ text }) => text)
    expect(texts).toHaveLength(3)
    expect(new Set(texts).size).toBe(1)
    expect(refusals).toEqual(
      Array.from({ length: 3 }, () => ({ token: 'old', status: 401, wwwAuthenticate: 'Bearer' })),
    )
  })

  test('fails with the link if the user must log in', async () => {
    const { logins } = credentials({})
    const { upstream } = await connectScripted(modern(takes('x', answer)), {}, { logins })
    const { message, data } = await exchangeWith(await upstream.open(caller), 'tools/call').failure()
    expect(message).toBe(`Server "far" ${LOGIN.text}`)
    expect(data).toEqual({ reason: 'login_required', upstream: 'far', url: LOGIN.link.url })
  })

  test.each([
    [403, 'Bearer error="insufficient_scope", scope="write"', 'login_required'],
    [403, 'Bearer error="invalid_token"', 'upstream_auth'],
    [403, 'Basic', 'upstream_auth'],
  ])('asks what to do after HTTP %s with %s only if a login may help', async (status, challenge, reason) => {
    const { logins, refusals } = credentials({ token: 'a' })
    const { upstream } = await connectScripted(modern(takes('b', answer, challenge, status)), {}, { logins })
    const { data } = await exchangeWith(await upstream.open(caller), 'tools/call').failure()
    expect(data).toMatchObject({ reason })
    expect(refusals).toHaveLength(reason === 'login_required' ? 1 : 0)
  })

  test('gets the refusal itself if the server offers no OAuth', async () => {
    const { logins } = credentials({ outcomes: [{ kind: 'unsupported' }] })
    const { upstream } = await connectScripted(modern(takes('b', answer, 'Bearer')), {}, { logins })
    const { message, data } = await exchangeWith(await upstream.open(caller), 'tools/call').failure()
    expect(message).toBe('Server "far" refused our credentials (HTTP 401: "who are you"): check its "headers"')
    expect(data).toMatchObject({ reason: 'upstream_auth' })
  })

  test('starts no login because of a session that the server has forgotten', async () => {
    const { logins, refusals } = credentials({ token: 'a' })
    const forgetful: Script = (arrived, response) => {
      if (arrived.headers['mcp-session-id'] === 's2') answer(arrived, response)
      else response.writeHead(401).end('Unauthorized: Session not found')
    }
    const { upstream } = await connectScripted(legacy(forgetful), {}, { logins })
    await exchangeWith(await upstream.open(caller), 'tools/call').result()
    expect(refusals).toEqual([])
  })

  test('does not take its token to another origin', async () => {
    const elsewhere = await scriptedServer(modern(answer))
    const { logins } = credentials({ token: 'secret' })
    const redirect: Script = ({ body }, response) => {
      if (body.method === 'tools/call') response.writeHead(307, { location: `${elsewhere.origin}/mcp` }).end()
      else modern(answer)({ body } as never, response)
    }
    const { upstream } = await connectScripted(redirect, { allowCrossOriginRedirect: true }, { logins })
    await exchangeWith(await upstream.open(caller), 'tools/call').result()
    const [arrived] = elsewhere.of('tools/call')
    await elsewhere.close()
    expect(arrived?.headers).not.toHaveProperty('authorization')
  })
})

test('a refusal of another origin, which got no token, starts no login and replaces no token', async () => {
  const elsewhere = await scriptedServer((_, response) =>
    response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="https://evil.example/metadata"' }).end(),
  )
  const { logins, refusals } = credentials({ token: 'secret' })
  const redirect: Script = ({ body }, response) => {
    if (body.method === 'tools/call') response.writeHead(307, { location: `${elsewhere.origin}/mcp` }).end()
    else modern(answer)({ body } as never, response)
  }
  const { upstream } = await connectScripted(redirect, { allowCrossOriginRedirect: true }, { logins })
  const { data } = await exchangeWith(await upstream.open(caller), 'tools/call').failure()
  await elsewhere.close()
  expect([data, refusals]).toMatchObject([{ reason: 'upstream_auth' }, []])
})

describe('a server that wants a login', () => {
  test.each([
    ['modern', modern(answer), '2026-07-28'],
    ['legacy', legacy(answer), '2025-11-25'],
  ] as const)('shows its era only after it (%s)', async (_, script, revision) => {
    const { logins, state } = credentials({})
    const { server, upstream } = await connectScripted(takes('t', script), {}, { logins, backoffMs: 60_000 })
    for (let i = 0; i < 2; i++) await expect(upstream.open(caller)).rejects.toMatchObject({ reason: 'login_required' })
    expect(server.of('initialize')).toEqual([])
    expect(await upstream.probe?.()).toBe(true)
    state.token = 't'
    expect((await upstream.open(caller)).revision).toBe(revision)
  })

  test('on an HTTP+SSE channel says so, too', async () => {
    const { logins } = credentials({})
    const script: Script = (arrived, response) => {
      if (arrived.method === 'GET') response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
      else response.writeHead(405).end()
    }
    for (const type of ['sse', 'auto'] as const) {
      const { upstream } = await connectScripted(script, { type }, { logins })
      await expect(upstream.open(caller)).rejects.toMatchObject({ reason: 'login_required' })
    }
  })
})
