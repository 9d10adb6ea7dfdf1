import type { ScopeRule } from '../../config/snapshot.ts'
import type { AuthorizationServer } from '../../protocol/authorization-server.ts'
import type { BrowserResponse, SignIn } from '../../protocol/sign-in.ts'
import { StateError } from '../../stores/state/state-store.ts'
import { canAccess } from '../token.ts'
import type { RecordAuthEvent } from './auth-events.ts'
import { type AuthorizationRequest, type RequestContext, readAuthorizationRequest } from './authorization-request.ts'
import type { OAuthClient } from './client-metadata.ts'
import type { Clients } from './clients.ts'
import { createGrantId } from './grant-tokens.ts'
import type { Grants } from './grants.ts'
import { addToRedirect } from './redirect-uris.ts'
import type { Sealer } from './sealer.ts'
import type { SignedIn, Visitors } from './visitors.ts'

interface AuthorizeOptions {
  readonly origin: () => string
  readonly scopes: ReadonlyMap<string, ScopeRule>
  readonly workspaceAt: RequestContext['workspaceAt']
  readonly clients: Clients
  readonly grants: Grants
  readonly visitors: Visitors
  readonly signIn: Pick<SignIn, 'ask'>
  readonly sealer: Sealer
  readonly record: RecordAuthEvent
}

/** What the consent page stands for. The id of the grant makes it good for one use: no two grants have the same. */
interface ConsentHandle {
  readonly browser: string
  readonly principal: string
  readonly grant: string
  readonly request: AuthorizationRequest
}

const PATH = '/oauth/authorize'
const LONGEST_QUERY = 2500 // characters: while the visitor signs in at an issuer, a cookie holds it
const CONSENT_MS = 15 * 60_000

const showProblem = (text: string, status = 400): BrowserResponse => ({
  kind: 'message',
  page: { status, title: 'The client cannot be connected', text },
})

/** The authorization endpoint and its consent page. A code is only given for what a visitor has allowed. */
export const createAuthorize = (options: AuthorizeOptions): Pick<AuthorizationServer, 'authorize' | 'consent'> => {
  const { origin, scopes, workspaceAt, clients, grants, visitors, signIn, sealer, record } = options

  /** Leads back to the client. Every response names the issuer (RFC 9207). */
  const respond = (
    { redirectUri, state }: Pick<AuthorizationRequest, 'redirectUri' | 'state'>,
    params: Readonly<Record<string, string>>,
  ): string => addToRedirect(redirectUri, { ...params, state, iss: origin() })

  /**
   * Errors are only sent by themselves to listed clients: any other could have registered just to have its visitors
   * redirected to a page that looks like this one (RFC 9700, section 4.11.2).
   */
  const respondError = (
    client: OAuthClient,
    to: Pick<AuthorizationRequest, 'redirectUri' | 'state'>,
    code: string,
    text: string,
  ): BrowserResponse => {
    const url = respond(to, { error: code, error_description: text })
    if (client.source === 'listed') return { kind: 'redirect', to: url }
    const page = { status: 400, title: 'The client cannot be connected', text: `Its request is not valid: ${text}.` }
    return { kind: 'message', page: { ...page, link: { text: 'Back to the client', url } } }
  }

  const issueCode = async (
    id: string,
    { subject, principal }: SignedIn,
    request: AuthorizationRequest,
  ): Promise<string> => {
    const { client, redirectUri, workspace, challenge } = request
    const content = {
      client: client.id,
      clientName: client.name,
      redirectUri,
      workspace,
      challenge,
      scopes: request.scopes,
    }
    const code = await grants.create(id, { ...content, subject, principal })
    await clients.markUsed(client)
    return respond(request, { code })
  }

  const askForConsent = (visitor: SignedIn, request: AuthorizationRequest, returnTo: string): BrowserResponse => {
    const { browser, principal } = visitor
    const { client, redirectUri, workspace } = request
    const sealed = { ...request, client: { ...client, redirectUris: [redirectUri] } } // the others may be long
    const content: ConsentHandle = { browser, principal, grant: createGrantId(), request: sealed }
    return {
      kind: 'consent',
      page: {
        handle: sealer.seal('consent', content, CONSENT_MS),
        signOutHandle: sealer.seal('sign-in', { browser, returnTo, purpose: purposeOf(request) }, CONSENT_MS),
        visitor: visitor.name,
        client: {
          name: client.name,
          domain: client.source === 'document' ? new URL(client.id).host : undefined,
          isListed: client.source === 'listed',
        },
        redirectUri,
        workspace,
        scopes: request.scopes.map(name => ({ name, tools: scopes.get(name)?.tools })),
      },
    }
  }

  const serve = async (
    request: AuthorizationRequest,
    cookies: string | undefined,
    returnTo: string,
  ): Promise<BrowserResponse> => {
    const { client, prompts, workspace } = request
    const visitor = await visitors.signedIn(cookies)
    const isSilent = prompts.includes('none')
    if (!visitor || prompts.includes('login'))
      return isSilent
        ? respondError(client, request, 'login_required', 'the visitor is not signed in')
        : signIn.ask({ cookies }, returnTo, purposeOf(request))
    if (workspace !== undefined && !canAccess(visitor, workspace)) {
      const error = `${visitor.name} may not use the workspace "${workspace}". Sign in as another user, or connect the client to another workspace.`
      return signIn.ask({ cookies }, returnTo, purposeOf(request), { error })
    }
    // Any program on the visitor's machine can answer at other redirect URIs, and would not be noticed.
    const mayRemember = request.redirectUri.startsWith('https:') && !prompts.includes('consent')
    const consent = { client: client.id, redirectUri: request.redirectUri, workspace }
    if (mayRemember && (await grants.isRemembered(visitor.principal, consent, request.scopes)))
      return { kind: 'redirect', to: await issueCode(createGrantId(), visitor, request) }
    if (isSilent) return respondError(client, request, 'consent_required', 'the visitor has not allowed this yet')
    return askForConsent(visitor, request, returnTo)
  }

  return {
    authorize: async ({ params, cookies, address }) => {
      if (params.toString().length > LONGEST_QUERY)
        return showProblem(`Its request is longer than ${LONGEST_QUERY} characters.`)
      const [id, ...others] = params.getAll('client_id')
      if (id === undefined || others.length > 0) return showProblem('Its request must have one "client_id".')
      const client = await clients.find(id, address)
      if (typeof client === 'string') return showProblem(client)
      const reading = readAuthorizationRequest(params, client, { origin: origin(), scopes, workspaceAt })
      if (reading.kind === 'shown') return showProblem(reading.text)
      if (reading.kind === 'answered') return respondError(client, reading, reading.code, reading.text)
      const again = new URLSearchParams(params)
      const { prompts } = reading.request
      if (prompts.includes('login')) again.set('prompt', prompts.filter(each => each !== 'login').join(' ')) // done then
      return serve(reading.request, cookies, `${PATH}?${again}`)
    },

    consent: async ({ params, cookies }) => {
      const handle = sealer.open<ConsentHandle>('consent', params.get('handle'))
      const visitor = await visitors.signedIn(cookies)
      if (!handle || visitor?.browser !== handle.browser || visitor.principal !== handle.principal)
        return showProblem(
          'This page has expired, or it was opened in another browser. Start again from your client. Cookies must be allowed.',
        )
      const { request } = handle
      if (params.get('decision') !== 'allow') {
        record('client_denied', { client: request.client.id, principal: visitor.principal })
        return {
          kind: 'redirect',
          to: respond(request, { error: 'access_denied', error_description: 'the user said no' }),
        }
      }
      try {
        return { kind: 'redirect', to: await issueCode(handle.grant, visitor, request) }
      } catch (error) {
        if (!(error instanceof StateError) || error.reason !== 'exists') throw error
        return showProblem('This page was used before. Start again from your client.')
      }
    },
  }
}

/** Why the visitor should sign in. */
const purposeOf = ({ client, redirectUri }: AuthorizationRequest): string => {
  const { protocol, host } = new URL(redirectUri)
  const place = protocol === 'https:' ? host : protocol === 'http:' ? 'an application on this computer' : protocol
  return `Sign in to connect ${client.name === undefined ? 'a client' : `“${client.name}”`} (${place}).`
}
