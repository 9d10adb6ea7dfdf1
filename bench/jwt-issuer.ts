import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const ONE_DAY_S = 86_400
const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')

/** An identity provider on loopback that publishes its key, with one access token that is valid for a day. */
export const startJwtIssuer = async (audience: string): Promise<{ url: string; token: string }> => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'bench', alg: 'ES256', use: 'sig' }
  const server = createServer((request, response) => {
    const body = request.url === '/jwks' ? { keys: [jwk] } : { issuer: url, jwks_uri: `${url}/jwks` }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const now = Math.floor(Date.now() / 1000)
  const claims = {
    iss: url,
    aud: audience,
    sub: 'caller',
    iat: now,
    exp: now + ONE_DAY_S,
    scope: 'mcp',
    client_id: 'bench',
  }
  const head = `${encoded({ alg: 'ES256', kid: 'bench', typ: 'at+jwt' })}.${encoded(claims)}`
  const signature = sign('sha256', Buffer.from(head), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return { url, token: `${head}.${signature.toString('base64url')}` }
}
