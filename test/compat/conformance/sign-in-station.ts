import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { ScenarioContext } from './client-scripts.ts'

/** The identity provider of the suite with a sign-in, which the suite's own does not have. */
export interface SignInStation {
  /** What the gateway's configuration says under `auth`. */
  readonly auth: object
  close(): Promise<void>
}

/** Signs everybody in as the person of the suite's ID token; token exchanges are passed on to the suite, which judges them. */
export const startSignInStation = async (context: ScenarioContext): Promise<SignInStation> => {
  const signIn = (query: URLSearchParams, response: ServerResponse): void => {
    const back = new URL(String(query.get('redirect_uri')))
    back.searchParams.set('code', 'a-code')
    back.searchParams.set('state', String(query.get('state')))
    response.writeHead(302, { location: back.href }).end()
  }
  const answer = (response: ServerResponse, value: object): void =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(String(request.url), 'http://localhost')
    const body = await text(request)
    if (pathname === '/authorize') return signIn(searchParams, response)
    if (pathname === '/userinfo') return answer(response, { sub: PERSON })
    if (new URLSearchParams(body).get('grant_type') === 'authorization_code')
      return answer(response, { access_token: 'of-the-sign-in', token_type: 'Bearer', id_token: context.idp_id_token })
    const judged = await fetch(String(context.idp_token_endpoint), {
      method: 'POST',
      headers: {
        'content-type': String(request.headers['content-type']),
        ...(request.headers.authorization && { authorization: request.headers.authorization }),
      },
      body,
    })
    response.writeHead(judged.status, { 'content-type': 'application/json' }).end(await judged.text())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const corp = {
    url: context.idp_issuer,
    principal: 'sub',
    grants: [{ workspaces: ['*'] }],
    clientId: context.idp_client_id,
    endpoints: { authorization: `${origin}/authorize`, token: `${origin}/token`, userinfo: `${origin}/userinfo` },
  }
  return {
    auth: { issuers: { corp }, server: { signIn: ['corp'] } },
    close: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** The subject of the suite's ID token. */
const PERSON = 'demo-user@example.com'
