import { createHash, randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import type { ShownPage } from '../../../support/login/browser.ts'
import type { SecretFlow } from './server-flows.ts'
import { CALLBACK, createWatchedBrowser, handleIn, type WatchedBrowser } from './watched-browser.ts'
import { newSecret, type World } from './world.ts'

/** A client that registers, and what it asks browsers for. */
const startClient = async ({ origin, request, secrets }: World) => {
  const [verifier, state] = [randomBytes(32).toString('base64url'), newSecret('client-state')]
  secrets.push(verifier, state)
  const { body } = await request('POST', '/oauth/register', {}, { redirect_uris: [CALLBACK], client_name: 'App' })
  const asked = {
    response_type: 'code',
    client_id: body.client_id as string,
    redirect_uri: CALLBACK,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state,
  }
  return { id: asked.client_id, verifier, link: `${origin}/oauth/authorize?${new URLSearchParams(asked)}` }
}
type TestClient = Awaited<ReturnType<typeof startClient>>

/** The visitor allows the client what it asks for; it redeems its code. */
const connect = async (world: World, { id, verifier }: TestClient, browser: WatchedBrowser, consent: ShownPage) => {
  const decision = { handle: handleIn(consent), decision: 'allow' }
  const allowed = await browser.visit(`${world.origin}/oauth/consent`, decision)
  const code = new URL(allowed.headers.location ?? 'none:').searchParams.get('code') ?? ''
  const form = { grant_type: 'authorization_code', client_id: id, code, redirect_uri: CALLBACK }
  const tokens = await world.post('/oauth/token', { ...form, code_verifier: verifier })
  expect(tokens.access_token).toMatch(/^dro_/)
  world.secrets.push(code, tokens.refresh_token ?? '')
  // The code, used again, ends the grant of another client only: this one has proven itself.
  await world.post('/oauth/token', { ...form, code_verifier: newSecret('verifier-of-forty-three-characters') })
  return { bearer: world.bearer(tokens.access_token ?? ''), refresh: tokens.refresh_token ?? '' }
}

const byToken: SecretFlow = async world => {
  const { act, post, secrets, ada } = world
  const client = await startClient(world)
  const browser = createWatchedBrowser(secrets)
  const wrong = `drg_${newSecret('wrong')}`
  secrets.push(wrong)
  await browser.signIn(await browser.visit(client.link), wrong)
  const token = ada.authorization?.replace('Bearer ', '') ?? ''
  const { bearer, refresh } = await connect(
    world,
    client,
    browser,
    await browser.signIn(await browser.visit(client.link), token),
  )
  expect((await act(bearer, 'machine__echo')).status).toBe(200)
  const form = { grant_type: 'refresh_token', client_id: client.id, refresh_token: refresh }
  const renewed = await post('/oauth/token', form)
  const again = await post('/oauth/token', { ...form, refresh_token: renewed.refresh_token ?? '' })
  for (const each of [renewed, again]) secrets.push(each.access_token ?? 'none', each.refresh_token ?? 'none')
  const guessed = newSecret('guessed')
  secrets.push(guessed)
  for (const made of [guessed, `drr_${guessed}`, refresh.slice(0, -4)])
    expect((await post('/oauth/token', { ...form, refresh_token: made })).error).toBe('invalid_grant')
  await post('/oauth/revoke', { token: again.refresh_token ?? '', client_id: client.id })
  expect((await post('/oauth/token', { ...form, refresh_token: again.refresh_token ?? '' })).error).toBe(
    'invalid_grant',
  )
}

/** The visitor signs in at an issuer, whose identity assertion then opens a server. */
const byIssuer: SecretFlow = async world => {
  const { act, origin, secrets, peers, known } = world
  const { state } = peers.corp
  state.claims = { sub: 'u1' }
  const client = await startClient(world)
  const browser = createWatchedBrowser(secrets)
  const lead = async (): Promise<ShownPage> => {
    const { text } = await browser.visit(client.link)
    const link = /href="(\/oauth\/sign-in\/corp[^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    return browser.visit(`${origin}${link}`, undefined, true)
  }
  const { interfere } = state
  state.interfere = response => {
    // It repeats what it was sent: on the page, which is for the visitor, and nowhere else.
    const sent = String(state.tokenRequests.at(-1))
    const refusal = { error: 'invalid_grant', error_description: decodeURIComponent(sent) }
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(refusal))
    return true
  }
  expect((await lead()).status).toBe(403)
  state.interfere = interfere
  const consent = await lead()
  expect(consent.text).toContain('/oauth/consent')
  const { bearer } = await connect(world, client, browser, consent)
  expect((await act(bearer, 'reports__echo')).status).toBe(200)
  expect(peers.machines.admitted.at(-1)?.user).toBe(known.assertion)
  for (const form of state.tokenRequests)
    for (const name of ['code', 'code_verifier', 'subject_token', 'refresh_token']) secrets.push(form.get(name) ?? '')
  for (const query of state.authorizations) secrets.push(query.get('state') ?? '', query.get('nonce') ?? '')
}

/** Tokens of an issuer, valid and not: JWTs, and opaque ones by introspection. */
const byIssuerTokens: SecretFlow = async ({ act, bearer, peers: { hub } }) => {
  const [jwt, opaque] = [await hub.sign({ aud: 'gateway' }), newSecret('opaque')]
  hub.opaque.set(opaque, { active: true, sub: 'ben', aud: 'gateway' })
  for (const token of [jwt, opaque]) expect((await act(bearer(token), 'machine__echo')).status).toBe(200)
  const refused = [
    await hub.sign({ aud: 'another' }),
    await hub.sign({ aud: 'gateway', exp: 1 }),
    await hub.sign({ aud: 'gateway', nonce: newSecret('nonce') }),
    `${jwt.slice(0, -20)}${'A'.repeat(20)}`,
    newSecret('unknown'),
    `drg_${newSecret('unknown')}`,
    `dro_${newSecret('unknown')}`,
  ]
  for (const token of refused) expect((await act(bearer(token), 'machine__echo')).status).toBe(401)
  hub.faults.introspection = (_, response) => void response.writeHead(500).end(opaque)
  expect((await act(bearer(newSecret('unchecked')), 'machine__echo')).status).toBe(503)
  hub.faults.introspection = undefined
}

/** The console: a link, its cookie, a token that its pages create, use and revoke, and a link that is wrong. */
const byConsole: SecretFlow = async ({ request, owner, origin, secrets, act, bearer }) => {
  const code = /code=(.+)$/.exec((await request('POST', '/admin/session/link', owner)).body.url)?.[1] ?? ''
  const wrong = newSecret('code')
  secrets.push(code, wrong)
  expect((await request('POST', '/admin/session', { origin }, { code: wrong })).status).toBe(401)
  const signedIn = await request('POST', '/admin/session', { origin }, { code })
  const { csrf, mcpToken } = signedIn.body
  secrets.push(csrf, mcpToken)
  const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const page = { cookie, origin, 'x-dragoman-csrf': csrf as string }
  expect((await act(bearer(mcpToken), 'machine__echo')).status).toBe(200)
  const created = await request('POST', '/admin/tokens', page, { name: 'laptop', principal: 'cy' })
  const api = bearer(created.body.secret)
  expect((await act(api, 'machine__echo')).status).toBe(200)
  expect((await request('DELETE', `/admin/tokens/${created.body.token.id}`, page)).status).toBe(200)
  expect((await act(api, 'machine__echo')).status).toBe(401)
  expect((await request('DELETE', '/admin/session', page)).status).toBe(204)
}

/** Flows in which clients and people log in at the gateway. */
export const CLIENT_FLOWS: Readonly<Record<string, SecretFlow>> = {
  'a client of the embedded authorization server, with a sign-in by token': byToken,
  'a client of it, with a sign-in at an issuer, and an identity assertion': byIssuer,
  'tokens of issuers, and introspection': byIssuerTokens,
  'the console, and its API tokens': byConsole,
}
