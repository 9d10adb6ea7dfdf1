import type { IncomingMessage } from 'node:http'
import { ConfigError, suggest } from '../config/problems.ts'
import type { LoginPage, LoginStatus, Logins } from '../protocol/oauth.ts'
import { readBody } from '../wire/http-body.ts'
import { Json } from '../wire/json/json.ts'
import type { AdminEndpoint } from './admin-routes.ts'

export interface LoginRoutesOptions {
  readonly logins: Logins
  /** The servers at which users log in. */
  readonly servers: () => readonly string[]
}

/** The login of one principal at one server. */
type ServerLogin = LoginStatus & { readonly server: string; readonly principal: string }

const LOCAL = 'local' // the principal of programs of the same user on this machine
const MAX_BODY_BYTES = 64 * 1024

/** The endpoints for logins at servers. The user who runs the gateway may start and end those of every principal. */
export const createLoginEndpoints = ({
  logins,
  servers,
}: LoginRoutesOptions): Readonly<Record<string, AdminEndpoint>> => {
  const subjectIn = async (request: IncomingMessage): Promise<{ server: string; principal: string }> => {
    const body = await bodyOf(request)
    const server = body.get('server')?.asString() ?? ''
    if (!servers().includes(server)) throw new ConfigError(unknownServer(server, servers()))
    return { server, principal: body.get('principal')?.asString() ?? LOCAL }
  }

  const list = async (request: IncomingMessage): Promise<readonly ServerLogin[]> => {
    const principal = new URL(request.url ?? '/', 'http://localhost').searchParams.get('principal') ?? LOCAL
    return Promise.all(
      servers().map(async server => ({ server, principal, ...(await logins.status(server, principal)) })),
    )
  }

  const begin = async (request: IncomingMessage): Promise<object> => {
    const { server, principal } = await subjectIn(request)
    const begun = await logins.begin(server, principal)
    if (begun.kind === 'failed') throw new ConfigError(`Server "${server}" ${begun.text}`)
    return begun.link
  }

  /** Where a browser logs in that cannot reach the gateway: the address it ends at is pasted into `finish`. */
  const open = async (request: IncomingMessage): Promise<object> => {
    const body = await bodyOf(request)
    const principal = body.get('principal')?.asString() ?? LOCAL
    const page = await logins.open(body.get('id')?.asString() ?? '', { principal, isOwner: true })
    if (page.kind === 'redirect') return { url: page.url }
    throw new ConfigError(textOf(page))
  }

  const finish = async (request: IncomingMessage): Promise<object> => {
    const body = await bodyOf(request)
    const principal = body.get('principal')?.asString() ?? LOCAL
    const page = await logins.finish(queryIn(body.get('address')?.asString() ?? ''), { principal, isOwner: true })
    if (page.kind === 'done') return { server: page.server, text: page.text }
    throw new ConfigError(textOf(page))
  }

  const end = async (request: IncomingMessage): Promise<object> => {
    const { server, principal } = await subjectIn(request)
    return logins.forget(server, principal)
  }

  return {
    '/admin/logins': { method: 'GET', access: 'owner', run: list },
    '/admin/logins/begin': { method: 'POST', access: 'owner', run: begin },
    '/admin/logins/open': { method: 'POST', access: 'owner', run: open },
    '/admin/logins/finish': { method: 'POST', access: 'owner', run: finish },
    '/admin/logins/end': { method: 'POST', access: 'owner', run: end },
  }
}

const bodyOf = async (request: IncomingMessage): Promise<Json> => {
  const body = await readBody(request, MAX_BODY_BYTES)
  return body.length === 0 ? Json.empty : Json.parse(body)
}

/** Of a whole address, or only of its query. */
const queryIn = (address: string): URLSearchParams =>
  new URLSearchParams(address.slice(address.indexOf('?') + 1).replace(/#.*$/, ''))

const textOf = (page: LoginPage): string => {
  if (page.kind === 'refused') return page.quoted === undefined ? page.text : `${page.text} (${page.quoted})`
  return page.kind === 'done' ? page.text : 'The login needs a browser that is signed in at the gateway'
}

const unknownServer = (name: string, known: readonly string[]): string =>
  `users log in to no server ${JSON.stringify(name)}; ${suggest(name, known, 'no server of the configuration uses OAuth')}`
