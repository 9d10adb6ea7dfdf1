import type { ScopeRule } from '../../config/snapshot.ts'
import type { OAuthForm, OAuthResponse } from '../../protocol/authorization-server.ts'
import { findRepeated, type RequestContext, readResourceTarget } from './authorization-request.ts'
import type { Clients } from './clients.ts'
import type { Grants, IssuedTokens } from './grants.ts'
import { OAuthRejection } from './oauth-rejection.ts'

interface TokenEndpointOptions {
  readonly origin: () => string
  readonly scopes: ReadonlyMap<string, ScopeRule>
  readonly workspaceAt: RequestContext['workspaceAt']
  readonly clients: Pick<Clients, 'isKnown' | 'keep'>
  readonly grants: Pick<Grants, 'redeem' | 'refresh' | 'revoke'>
}

const VERIFIER = /^[\w\-.~]{43,128}$/

/** The token endpoint and the revocation endpoint. Both reject with an OAuthRejection. */
export const createTokenEndpoint = ({ origin, scopes: known, workspaceAt, clients, grants }: TokenEndpointOptions) => {
  const baseScopes = [...known].flatMap(([name, { tools }]) => (tools === undefined ? [name] : []))

  /** The workspace that `resource` names; undefined: any that the grant is for. */
  const targetOf = (params: URLSearchParams): string | undefined => {
    const target = readResourceTarget(params.getAll('resource'), { origin: origin(), workspaceAt })
    if (!target) throw new OAuthRejection('invalid_target', `"resource" must be a URL of this gateway, ${origin()}`)
    return target.workspace
  }

  const grantTypes: Readonly<Record<string, (params: URLSearchParams, client: string) => Promise<IssuedTokens>>> = {
    authorization_code: (params, client) => {
      const code = required(params, 'code')
      const verifier = required(params, 'code_verifier')
      if (!VERIFIER.test(verifier))
        throw new OAuthRejection('invalid_request', '"code_verifier" must have 43 to 128 unreserved characters')
      const redirectUri = params.get('redirect_uri') ?? undefined
      return grants.redeem(code, { client, redirectUri, verifier, workspace: targetOf(params) })
    },
    refresh_token: async (params, client) => {
      // Unknown ones are left out, as in the authorization request: clients repeat what they have asked for.
      const scopes = params
        .get('scope')
        ?.split(' ')
        .filter(scope => known.has(scope))
      const wanted = { client, scopes, baseScopes, workspace: targetOf(params) }
      const issued = await grants.refresh(required(params, 'refresh_token'), wanted)
      await clients.keep(client)
      return issued
    },
  }

  const knownClient = async (form: OAuthForm): Promise<string> => {
    const client = clientIdOf(form)
    if (client === undefined || !(await clients.isKnown(client)))
      throw new OAuthRejection('invalid_client', 'The client is unknown here: register it again', 401, {
        ...(form.authorization !== undefined && { 'www-authenticate': 'Basic realm="dragoman"' }),
      })
    return client
  }

  return {
    token: async (form: OAuthForm): Promise<OAuthResponse> => {
      const { params } = form
      const repeated = findRepeated(params)
      if (repeated !== undefined) throw new OAuthRejection('invalid_request', `more than one "${repeated}"`)
      const type = required(params, 'grant_type')
      const client = await knownClient(form)
      const redeem = Object.hasOwn(grantTypes, type) ? grantTypes[type] : undefined
      if (!redeem)
        throw new OAuthRejection(
          'unsupported_grant_type',
          '"grant_type" must be "authorization_code" or "refresh_token"',
        )
      const { access, refresh, expiresInMs, scopes } = await redeem(params, client)
      return {
        status: 200,
        body: {
          access_token: access,
          token_type: 'Bearer',
          expires_in: Math.floor(expiresInMs / 1000),
          ...(refresh !== undefined && { refresh_token: refresh }),
          ...(scopes.length > 0 && { scope: scopes.join(' ') }),
        },
      }
    },

    /** Tokens that are unknown, or of another client, are no error (RFC 7009, section 2.2). */
    revoke: async (form: OAuthForm): Promise<OAuthResponse> => {
      await grants.revoke(required(form.params, 'token'), await knownClient(form))
      return { status: 200, body: undefined }
    },
  }
}

const required = (params: URLSearchParams, name: string): string => {
  const value = params.get(name)
  if (value === null || value === '') throw new OAuthRejection('invalid_request', `"${name}" is missing`)
  return value
}

/** The client of a form. Clients have no secrets, so one that they send is not looked at. */
const clientIdOf = ({ params, authorization }: OAuthForm): string | undefined => {
  const given = params.get('client_id')
  if (given !== null) return given
  const encoded = /^Basic +([A-Za-z0-9+/=]+) *$/i.exec(authorization ?? '')?.[1]
  const [user] = Buffer.from(encoded ?? '', 'base64')
    .toString()
    .split(':')
  try {
    return user ? decodeURIComponent(user) : undefined
  } catch {
    return undefined
  }
}
