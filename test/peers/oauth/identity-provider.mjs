// `identity-provider.mjs FOLDER PORT SECONDS`: oidc-provider of FOLDER on a port, with sign-in forms, registration, rotation, and
// access tokens that live SECONDS. Tests read at /test/log what it was asked, and end every grant by a POST to /test/end-grants.
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, port, seconds] = process.argv.slice(2)
const { resolve } = createRequire(join(folder, 'node_modules', 'of-the-peers.js'))
const { default: Provider } = await import(pathToFileURL(resolve('oidc-provider')).href)
const issuer = `http://127.0.0.1:${port}`

const provider = new Provider(issuer, {
  cookies: { keys: [randomBytes(16).toString('hex')] },
  scopes: ['openid', 'offline_access', 'email', 'mcp'],
  claims: { openid: ['sub'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  rotateRefreshToken: true,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true }),
  }),
  clients: [
    {
      client_id: 'dragoman',
      client_secret: 'secret-of-dragoman-at-the-provider',
      redirect_uris: (process.env.REDIRECT_URIS ?? 'http://127.0.0.1:1/oauth/callback').split(' '),
      application_type: 'native',
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'mcp',
        audience: resource,
        accessTokenTTL: Number(seconds),
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
})

const log = []
const grants = new Set()
provider.use(async (ctx, next) => {
  await next()
  const { Grant, Client } = ctx.oidc?.entities ?? {}
  if (Grant?.jti) grants.add(Grant.jti)
  if (ctx.method === 'POST' && /^\/(token|reg)/.test(ctx.path))
    log.push({
      path: ctx.path,
      status: ctx.status,
      asked: ctx.oidc?.params ?? {},
      answered: ctx.body,
      client: Client?.clientId,
    })
})

const endGrants = async () => {
  for (const id of grants) {
    await provider.RefreshToken.revokeByGrantId(id)
    await provider.Grant.adapter.destroy(id)
  }
  grants.clear()
}

const serve = provider.callback()
createServer(async (request, response) => {
  if (request.url === '/test/log') return response.end(JSON.stringify(log))
  if (request.url === '/test/end-grants') return response.end(String(await endGrants()))
  serve(request, response)
}).listen(Number(port), '127.0.0.1')
