import { Agent, type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http'
import { clientAddressOf, setClientAddress } from '../../protocol/admission.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Membership, Replica } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { type HttpRoutes, type RequestHandler, splitTarget } from '../http/listen.ts'
import { rejectUnread } from '../http/response.ts'
import { CALLER_HEADER, type CallerSeal } from './caller-seal.ts'

// Requests of owners and operators, and those of people in browsers, are served by the main process of a gateway, which
// knows all its workers. A worker sends them there as they are. This file is both ends of that.

/** The label of the main process among the workers of a gateway. No label of a configuration has such a name. */
export const MAIN_LABEL = '$main'

/** The main process, as far as it is known. */
export const findMain = (members: Pick<Membership, 'all'>): Replica | undefined =>
  members.all().find(({ labels }) => labels.includes(MAIN_LABEL))

/** Takes the place of a policy in the sealed caller. No policy has such a name, so that it can be used for nothing else. */
const OWNER_GRANT = '\0main'
const NO_WORKSPACE = ''

interface MainForwarderOptions {
  readonly seal: CallerSeal
  readonly members: Pick<Membership, 'all'>
  readonly log: Log
}

const NOT_PASSED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'expect',
  CALLER_HEADER,
])
const UNREACHABLE = rpcError('internal', 'The main process of the gateway cannot be reached; send the request again')

const LIVENESS = '/healthz' // of the process that answers

/** The same paths, served by the main process. */
export const createMainRoutes = (routes: HttpRoutes, { seal, members, log }: MainForwarderOptions): HttpRoutes => {
  const agent = new Agent({ keepAlive: true })

  const forward: RequestHandler = (raw, response) => {
    const main = findMain(members)
    if (!main) return rejectUnread(raw, response, 503, UNREACHABLE)
    const address = clientAddressOf(raw)
    const caller = { workspace: NO_WORKSPACE, principal: undefined, policyName: OWNER_GRANT, address }
    const headers = [...passedHeaders(raw), CALLER_HEADER, seal.seal(caller, main.replica, Date.now())]
    const { hostname, port } = new URL(main.address)
    const path = splitTarget(raw.url).url
    const sent = openRequest({ hostname, port, method: raw.method, path, headers: inPairs(headers), agent })
    sent.on('response', answer => {
      response.writeHead(answer.statusCode ?? 502, passedHeaders(answer))
      response.flushHeaders()
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    })
    sent.on('error', error => {
      if (response.destroyed) return
      log.warn({ err: error }, 'main process not reached')
      if (response.headersSent) response.destroy()
      else rejectUnread(raw, response, 503, UNREACHABLE)
    })
    response.on('close', () => sent.destroy())
    raw.pipe(sent)
  }
  return Object.fromEntries(
    Object.entries(routes).map(([path, handler]) => [path, path === LIVENESS ? handler : forward]),
  )
}

/** The headers of a message without those of one connection, flat. */
const passedHeaders = ({ rawHeaders }: IncomingMessage): string[] => {
  const passed: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    if (!NOT_PASSED.has(name)) passed.push(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  }
  return passed
}

/** Headers that came several times are sent so. */
const inPairs = (flat: readonly string[]): Record<string, string | string[]> => {
  const pairs: Record<string, string | string[]> = {}
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const [name, value] = [(flat[at] ?? '').toLowerCase(), flat[at + 1] ?? '']
    const known = pairs[name]
    pairs[name] = known === undefined ? value : [known, value].flat()
  }
  return pairs
}

const UNSEALED = rpcError('invalidRequest', 'Forbidden: this port is for the workers of the gateway')

/** Serves what workers have forwarded, as if the client had reached this process. */
export const createMainEndpoint = (routes: HttpRoutes, seal: CallerSeal, self: () => string): HttpRoutes => {
  const serveAs = (handler: RequestHandler) => (request: IncomingMessage, response: ServerResponse, path: string) => {
    const sealed = request.headers[CALLER_HEADER]
    const reading = typeof sealed === 'string' ? seal.open(sealed, self(), Date.now()) : ({ kind: 'invalid' } as const)
    if (reading.kind !== 'valid' || reading.caller.policyName !== OWNER_GRANT)
      return rejectUnread(request, response, 403, UNSEALED)
    delete request.headers[CALLER_HEADER]
    setClientAddress(request, reading.caller.address)
    handler(request, response, path)
  }
  return Object.fromEntries(Object.entries(routes).map(([path, handler]) => [path, serveAs(handler)]))
}
