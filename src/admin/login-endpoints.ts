import { ConfigError, suggest } from '../config/problems.ts'
import { LOGIN_PATHS, type LoginPage, type LoginStatus, type Logins } from '../protocol/oauth.ts'
import type { LoginInfo, LoginList, LoginServerInfo, LoginStepList } from './api/logins.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'

export interface LoginEndpointsOptions {
  readonly logins: Logins
  /** The servers at which users log in. */
  readonly servers: () => readonly string[]
  /** The same, with what is known of them. */
  readonly describeServers: () => readonly Omit<LoginServerInfo, 'logins'>[]
  /** Whom logins can be for, besides the user of this machine. */
  readonly principals: () => Promise<LoginList['principals']>
}

/** The login of one principal at one server. */
type ServerLogin = LoginStatus & { readonly server: string; readonly principal: string }

const LOCAL = 'local' // the principal of programs of the same user on this machine
const TEXT = { type: 'string' }
const SUBJECT = { type: 'object', properties: { server: TEXT, principal: TEXT }, required: ['server'] }
const OPENING = { type: 'object', properties: { id: TEXT, principal: TEXT }, required: ['id'] }
const FINISHING = { type: 'object', properties: { address: TEXT, principal: TEXT }, required: ['address'] }

/** The endpoints for logins at servers. The user who runs the gateway may start and end those of every principal. */
export const createLoginEndpoints = (options: LoginEndpointsOptions): readonly AdminEndpoint[] => {
  const { logins, servers, describeServers, principals } = options
  const subjectIn = async (call: AdminCall): Promise<{ server: string; principal: string }> => {
    const body = await call.json()
    const server = body.get('server')?.asString() ?? ''
    if (!servers().includes(server)) throw new ConfigError(unknownServer(server, servers()))
    return { server, principal: body.get('principal')?.asString() ?? LOCAL }
  }

  const list = async ({ query }: AdminCall): Promise<readonly ServerLogin[]> => {
    const principal = query.get('principal') ?? LOCAL
    return Promise.all(
      servers().map(async server => ({ server, principal, ...(await logins.status(server, principal)) })),
    )
  }

  const listAll = async (): Promise<LoginList> => {
    const found = await logins.all()
    const loginsOf = (name: string): readonly LoginInfo[] =>
      found.flatMap(({ kind: _kind, server, ...login }) => (server === name ? login : []))
    return {
      servers: describeServers().map(server => ({ ...server, logins: loginsOf(server.name) })),
      principals: [{ principal: LOCAL, name: LOCAL }, ...(await principals())],
    }
  }

  const steps = ({ params }: AdminCall): LoginStepList => {
    const server = params.server ?? ''
    if (!servers().includes(server)) throw new AdminError(404, unknownServer(server, servers()))
    return { steps: logins.steps(server) }
  }

  const begin = async (call: AdminCall): Promise<object> => {
    const { server, principal } = await subjectIn(call)
    const begun = await logins.begin(server, principal)
    if (begun.kind === 'failed') throw new ConfigError(`Server "${server}" ${begun.text}`)
    return begun.link
  }

  /** Where a browser logs in that cannot reach the gateway: the address it ends at is pasted into `finish`. */
  const open = async (call: AdminCall): Promise<object> => {
    const body = await call.json()
    const principal = body.get('principal')?.asString() ?? LOCAL
    const page = await logins.open(body.get('id')?.asString() ?? '', { principal, isOwner: true })
    if (page.kind === 'redirect') return { url: page.url }
    throw new ConfigError(textOf(page))
  }

  const finish = async (call: AdminCall): Promise<object> => {
    const body = await call.json()
    const principal = body.get('principal')?.asString() ?? LOCAL
    const page = await logins.finish(addressIn(body.get('address')?.asString() ?? ''), { principal, isOwner: true })
    if (page.kind === 'done') return { server: page.server, text: page.text }
    throw new ConfigError(textOf(page))
  }

  const end = async (call: AdminCall): Promise<object> => {
    const { server, principal } = await subjectIn(call)
    return logins.forget(server, principal)
  }

  return [
    {
      method: 'GET',
      path: '/admin/logins',
      access: 'owner',
      summary: 'The logins of one principal at servers',
      parameters: { principal: { type: 'string', default: LOCAL } },
      run: list,
    },
    {
      method: 'GET',
      path: '/admin/logins/servers',
      access: 'owner',
      summary: 'The servers at which users log in, and who is logged in',
      run: listAll,
    },
    {
      method: 'GET',
      path: '/admin/logins/servers/{server}/steps',
      access: 'owner',
      summary: 'What was done for logins at a server lately, step by step and without secrets, at this replica',
      run: steps,
    },
    {
      method: 'POST',
      path: '/admin/logins/begin',
      access: 'owner',
      summary: 'Starts a login; answers with the page to open',
      body: SUBJECT,
      run: begin,
    },
    {
      method: 'POST',
      path: '/admin/logins/open',
      access: 'owner',
      summary: 'The address of the authorization server, for a browser that cannot reach the gateway',
      body: OPENING,
      run: open,
    },
    {
      method: 'POST',
      path: '/admin/logins/finish',
      access: 'owner',
      summary: 'Ends that login with the address at which the browser ended',
      body: FINISHING,
      run: finish,
    },
    {
      method: 'POST',
      path: '/admin/logins/end',
      access: 'owner',
      summary: 'Revokes and forgets a login',
      body: SUBJECT,
      run: end,
    },
  ]
}

/** A whole address; its query alone is enough where the authorization server says in it who it is. */
const addressIn = (text: string): URL => {
  const address = text.trim()
  return URL.parse(address) ?? new URL(`${LOGIN_PATHS.callback}?${address.replace(/^.*\?/, '')}`, 'http://gateway')
}

const textOf = (page: LoginPage): string => {
  if (page.kind === 'refused')
    return page.quoted === undefined ? page.text : `${page.text} (${page.quoted.replaceAll(/\s+/g, ' ')})`
  return page.kind === 'done' ? page.text : 'The login needs a browser that is signed in at the gateway'
}

const unknownServer = (name: string, known: readonly string[]): string =>
  `users log in to no server ${JSON.stringify(name)}; ${suggest(name, known, 'no server of the configuration uses OAuth')}`
