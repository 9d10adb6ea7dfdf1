import type { Json } from '../wire/json/json.ts'
import type { CreatedToken, NewToken, OAuthClientInfo, OAuthClientList, TokenInfo, TokenList } from './api/tokens.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'

export interface TokenEndpointsOptions {
  readonly tokens: TokenManager
  /** The clients of the embedded authorization server; undefined: there is none. */
  readonly oauthClients?: OAuthClients | undefined
}

/** Creates and revokes tokens, at once for all requests that follow. */
export interface TokenManager {
  list(): Promise<TokenList>
  /** Rejects with an AdminError that says which part is wrong. */
  create(wish: NewToken): Promise<CreatedToken>
  /** Ends the sessions and streams of the token, too; undefined if there is none. */
  revoke(id: string): Promise<TokenInfo | undefined>
}

export interface OAuthClients {
  list(): Promise<readonly OAuthClientInfo[]>
  /** False if there is none. */
  end(id: string): Promise<boolean>
}

const TEXT = { type: 'string' }
const NEW_TOKEN = {
  type: 'object',
  properties: {
    name: TEXT,
    workspaces: { type: 'array', items: TEXT },
    policy: TEXT,
    expires: { type: 'string', description: 'a lifetime like 12h, 30d or 1y' },
    principal: TEXT,
    admin: { type: 'boolean', description: 'its holder may change the gateway' },
  },
  required: ['name'],
  additionalProperties: false,
}
const NO_TOKEN = 'There is no token with this id: it was revoked. Read the list again'
const NO_CLIENT = 'There is no client with this id: it was disconnected. Read the list again'

/** The endpoints for API tokens, and for the clients that people have connected with OAuth. */
export const createTokenEndpoints = ({ tokens, oauthClients }: TokenEndpointsOptions): readonly AdminEndpoint[] => {
  const revoke = async ({ params }: AdminCall): Promise<TokenInfo> => {
    const revoked = await tokens.revoke(params.id ?? '')
    if (!revoked) throw new AdminError(404, NO_TOKEN)
    return revoked
  }

  const listClients = async (): Promise<OAuthClientList> => ({
    isOn: oauthClients !== undefined,
    clients: (await oauthClients?.list()) ?? [],
  })

  const disconnect = async ({ params }: AdminCall): Promise<undefined> => {
    if (!(await oauthClients?.end(params.id ?? ''))) throw new AdminError(404, NO_CLIENT)
  }

  return [
    {
      method: 'GET',
      path: '/admin/tokens',
      access: 'owner',
      summary: 'The API tokens, without their secrets',
      run: () => tokens.list(),
    },
    {
      method: 'POST',
      path: '/admin/tokens',
      access: 'owner',
      summary: 'Creates a token; only this answer has its secret',
      body: NEW_TOKEN,
      run: async call => tokens.create(wishIn(await call.json())),
    },
    {
      method: 'DELETE',
      path: '/admin/tokens/{id}',
      access: 'owner',
      summary: 'Revokes a token, and ends its sessions and streams',
      run: revoke,
    },
    {
      method: 'GET',
      path: '/admin/oauth-clients',
      access: 'owner',
      summary: 'The clients that people have connected with OAuth',
      run: listClients,
    },
    {
      method: 'DELETE',
      path: '/admin/oauth-clients/{id}',
      access: 'owner',
      summary: 'Disconnects such a client: its tokens are no longer valid',
      isEmpty: true,
      run: disconnect,
    },
  ]
}

const wishIn = (body: Json): NewToken => ({
  name: body.get('name')?.asString() ?? '',
  workspaces: body.get('workspaces')?.toValue() as readonly string[] | undefined, // the schema was checked
  policy: body.get('policy')?.asString(),
  expires: body.get('expires')?.asString(),
  principal: body.get('principal')?.asString(),
  admin: body.get('admin')?.asBoolean(),
})
