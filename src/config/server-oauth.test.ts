import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { loadConfig } from './load.ts'

const env = {
  GH_SECRET: 's3cret',
  PEM: '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n',
  HOME: '/home',
}
const issuers = {
  corp: { url: 'https://login.test', clientId: 'gw', grants: [{ workspaces: ['*'] }] },
  keys: { url: 'https://keys.test', grants: [{ workspaces: ['*'] }] },
}
const load = (entry: object) => {
  const mcpServers = { it: { url: 'https://it.test/mcp', ...entry } }
  return loadConfig({ value: { mcpServers, auth: { issuers } }, env })
}
const read = async (oauth: unknown) => {
  const server = (await load({ oauth })).servers.get('it')
  return server?.kind === 'remote' ? server.oauth : server
}

it('is absent unless the entry has it', async () => {
  expect((await load({})).servers.get('it')).not.toHaveProperty('oauth')
  expect(await read(false)).toBe(false)
})

it.each<[object, object]>([
  [{}, { grant: 'authorization_code', login: 'caller' }],
  [
    { clientId: 'Iv1', clientSecret: '${GH_SECRET}', scopes: ['repo'], login: 'gateway', pkce: 'assumed' },
    {
      grant: 'authorization_code',
      clientId: 'Iv1',
      clientSecret: 's3cret',
      scopes: ['repo'],
      login: 'gateway',
      pkce: 'assumed',
    },
  ],
  [
    { issuer: 'https://as.test', clientMetadataUrl: 'https://gw.test/oauth/client.json' },
    {
      grant: 'authorization_code',
      login: 'caller',
      issuer: 'https://as.test',
      clientMetadataUrl: 'https://gw.test/oauth/client.json',
    },
  ],
  [
    { grant: 'client_credentials', clientId: 'gw', privateKey: '${PEM}' },
    { grant: 'client_credentials', clientId: 'gw', privateKey: env.PEM.trim() },
  ],
  [
    { grant: 'client_credentials', clientId: 'gw', privateKey: '{"kty":"EC"}' },
    { grant: 'client_credentials', clientId: 'gw', privateKey: '{"kty":"EC"}' },
  ],
  [
    { grant: 'jwt_bearer', assertion: '${GH_SECRET}' },
    { grant: 'jwt_bearer', assertion: 's3cret' },
  ],
  [
    { grant: 'jwt_bearer', assertionFile: '~/token' },
    { grant: 'jwt_bearer', assertionFile: '/home/token' },
  ],
  [
    { grant: 'id_jag', idp: 'corp', clientId: 'gw', clientSecret: 'x' },
    { grant: 'id_jag', idp: 'corp', clientId: 'gw', clientSecret: 'x' },
  ],
])('%j is read', async (oauth, expected) => {
  expect(await read(oauth)).toEqual(expected)
})

it.each<[unknown, string]>([
  [true, 'mcpServers.it.oauth: expected false, or an object; leave it out, and the gateway logs in'],
  ['yes', 'mcpServers.it.oauth: expected false, or an object'],
  [{ grant: 'password' }, 'mcpServers.it.oauth.grant: expected one of "authorization_code", "client_credentials"'],
  [{ clientId: 7 }, 'mcpServers.it.oauth.clientId: expected a string'],
  [{ clientId: '' }, 'mcpServers.it.oauth.clientId: expected a text that is not empty'],
  [{ clientSecret: 'x' }, 'mcpServers.it.oauth.clientSecret: goes with "clientId"'],
  [{ scopes: 'a b' }, 'mcpServers.it.oauth.scopes: expected an array of strings'],
  [{ scopes: ['a b'] }, 'mcpServers.it.oauth.scopes[0]: expected a scope, without spaces and quotes'],
  [{ login: 'all' }, 'mcpServers.it.oauth.login: expected one of "caller", "gateway"'],
  [{ pkce: 'off' }, 'mcpServers.it.oauth.pkce: expected one of "assumed"'],
  [{ issuer: 'http://as.test' }, 'mcpServers.it.oauth.issuer: expected a URL with https://'],
  [
    { clientMetadataUrl: 'http://localhost/c' },
    'mcpServers.it.oauth.clientMetadataUrl: expected an https URL with a path',
  ],
  [
    { clientMetadataUrl: 'https://a.test/' },
    'mcpServers.it.oauth.clientMetadataUrl: expected an https URL with a path',
  ],
  [
    { assertion: 'x' },
    'mcpServers.it.oauth.assertion: goes with the grant "jwt_bearer", not with "authorization_code"',
  ],
  [{ idp: 'corp' }, 'mcpServers.it.oauth.idp: goes with the grant "id_jag"'],
  [{ grant: 'client_credentials' }, 'mcpServers.it.oauth: the grant "client_credentials" needs "clientId"'],
  [
    { grant: 'client_credentials', clientId: 'a' },
    'mcpServers.it.oauth: the grant "client_credentials" needs "clientSecret" or "privateKey"',
  ],
  [
    { grant: 'client_credentials', clientId: 'a', clientSecret: 'b', privateKey: '{}' },
    'mcpServers.it.oauth.privateKey: has "clientSecret", "privateKey"; keep only one of them',
  ],
  [
    { grant: 'client_credentials', clientId: 'a', clientSecret: 'b', login: 'gateway' },
    'mcpServers.it.oauth.login: goes with the grant "authorization_code"',
  ],
  [
    { grant: 'client_credentials', clientId: 'a', privateKey: 'stock.pem' },
    'mcpServers.it.oauth.privateKey: expected a private key as PEM',
  ],
  [{ grant: 'jwt_bearer' }, 'mcpServers.it.oauth: the grant "jwt_bearer" needs "assertion" or "assertionFile"'],
  [{ grant: 'jwt_bearer', assertion: 'a', assertionFile: 'b' }, 'keep only one of them'],
  [{ grant: 'id_jag', clientId: 'a' }, 'mcpServers.it.oauth: the grant "id_jag" needs "idp"'],
  [{ grant: 'id_jag', clientId: 'a', idp: 'crop' }, 'mcpServers.it.oauth.idp: no issuer "crop"; did you mean "corp"?'],
  [{ grant: 'id_jag', clientId: 'a', idp: 'keys' }, 'mcpServers.it.oauth.idp: auth.issuers.keys has no "clientId"'],
])('%j is rejected', async (oauth, message) => {
  await expect(read(oauth)).rejects.toThrow(message)
})

it.each<[object, string]>([
  [{ clientId: 'a', clientSecret: '${NOPE}' }, 'oauth.clientSecret: the variable NOPE is not set'],
  [
    { grant: 'client_credentials', clientId: 'a', privateKey: '${GH_SECRET}' },
    'oauth.privateKey, with its variables filled in: expected a private key as PEM',
  ],
])('%j makes the server unavailable', async (oauth, reason) => {
  expect(await read(oauth)).toMatchObject({ kind: 'unavailable', reason: expect.stringContaining(reason) })
})

it('never applies where an Authorization header is configured', async () => {
  const withHeader = await load({ headers: { Authorization: 'Bearer x' }, oauth: { clientId: 'a' } })
  expect(withHeader.servers.get('it')).toMatchObject({ oauth: false })
  expect(withHeader.warnings.join()).toContain('mcpServers.it.oauth: ignored, because the "Authorization" header')
  const template = await load({ headers: { authorization: 'Bearer ${caller.name}' } })
  expect(template.servers.get('it')).toMatchObject({ oauth: false })
  expect(template.warnings).toEqual([])
  const perCaller = await load({ credentials: { ada: { headers: { Authorization: 'Bearer x' } } } })
  expect(perCaller.servers.get('it')).toMatchObject({ oauth: false })
})

it('of other clients works, with a warning for what is theirs alone', async () => {
  const gemini = await load({ oauth: { clientId: 'a', authorizationUrl: 'https://x', clientid: 'b' } })
  expect(gemini.servers.get('it')).toMatchObject({ oauth: { clientId: 'a' } })
  expect(gemini.warnings).toEqual([
    'mcpServers.it.oauth: unknown key "clientid" is ignored; did you mean "clientId"?',
    'mcpServers.it.oauth: ignored keys that are not ours: "authorizationUrl"',
  ])
  const cursor = await load({ auth: { CLIENT_ID: 'a', CLIENT_SECRET: '${GH_SECRET}', scopes: ['x'] } })
  expect(cursor.servers.get('it')).toMatchObject({ oauth: { clientId: 'a', clientSecret: 's3cret', scopes: ['x'] } })
})

it('finds the file of an assertion beside the configuration', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-oauth-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const mcpServers = { it: { url: 'https://it.test', oauth: { grant: 'jwt_bearer', assertionFile: 'token' } } }
  await writeFile(join(folder, 'dragoman.json'), JSON.stringify({ mcpServers }))
  const { servers } = await loadConfig({ file: join(folder, 'dragoman.json'), env })
  expect(servers.get('it')).toMatchObject({ oauth: { assertionFile: join(folder, 'token') } })
})
