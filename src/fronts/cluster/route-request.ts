import { Abort } from '../../protocol/cancellation.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Membership } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { readBody } from '../../wire/http-body.ts'
import type { ActiveCalls } from '../http/active-calls.ts'
import { clientAddress, type FrontRequest } from '../http/front-request.ts'
import { lookupError } from '../http/read-request.ts'
import { addresseeOf } from './addressee.ts'
import type { Forwarder } from './forwarder.ts'
import { sendLost, sendUnreachable } from './lost-request.ts'

/** Where the session or channel of a request lives. `none`: nowhere, so that this replica rejects the request. */
export type Location = { readonly kind: 'here' | 'none' } | { readonly kind: 'elsewhere'; readonly home: string }

/** Finds a session or channel; makes it live here if its home is gone. */
export type Locate = (id: string, request: FrontRequest) => Location | Promise<Location>

/** How requests for other replicas have ended, since the start. */
export interface ForwardCounts {
  readonly forwarded: number
  readonly lost: number // the home was lost while it served them
  readonly gone: number // the home was not at its address any more
  readonly unreachable: number
}

/** Decides where a request is served. */
export interface RequestRouter {
  readonly counts: ForwardCounts
  /** The replica that opens a session for this request; undefined: this one. */
  homeOfNew(request: FrontRequest): string | undefined
  /** Undefined if it is served here, which most are. */
  find(request: FrontRequest): Location | Promise<Location> | undefined
  /** Serves the request where it belongs. `serveHere` gets the body of a POST. Rejects if that cannot be read. */
  route(request: FrontRequest, found: Location | Promise<Location>, serveHere: ServeHere): Promise<void>
  /** Serves a message that names no session at another replica; false if there is none, or it is gone. */
  routeSessionless(request: FrontRequest, body: Buffer, home: Promise<string | undefined>): Promise<boolean>
}

export type ServeHere = (body: Buffer | undefined) => void

interface RouterOptions {
  readonly isHere: (id: string) => boolean
  readonly locate: Locate
  readonly homeFor?: ((workspace: string) => string | undefined) | undefined // of new sessions, as in FrontState
  readonly successor: () => string | undefined // serves what names no session; undefined: this replica, unless it stops
  readonly members: Pick<Membership, 'self' | 'at' | 'reportDead'>
  readonly forwarder: Forwarder
  readonly activeCalls: ActiveCalls
  readonly bodyBytes: number
  readonly log: Log
}

const ATTEMPTS = 4 // each one after another replica has gone
const REMEMBERED = 100_000
const REMEMBERED_MS = 60 * 60_000
const HERE = { kind: 'here' } as const

/** Sends requests for sessions of other replicas there, once. */
export const createRequestRouter = (options: RouterOptions): RequestRouter => {
  const { isHere, locate, homeFor, successor, members, forwarder, activeCalls, bodyBytes, log } = options
  const counts = { forwarded: 0, lost: 0, gone: 0, unreachable: 0 }
  const homes = new BoundedCache<string>(REMEMBERED, REMEMBERED_MS) // by id

  const locateAnywhere = async (id: string, request: FrontRequest): Promise<Location> => {
    const found = await locate(id, request)
    if (found.kind === 'elsewhere') homes.set(id, found.home)
    else homes.delete(id)
    return found
  }

  const homeOfNew = ({ workspace }: FrontRequest): string | undefined => homeFor?.(workspace)

  const find: RequestRouter['find'] = request => {
    const id = addresseeOf(request.raw)
    if (id === undefined) {
      const home = successor() ?? (request.raw.method === 'GET' ? homeOfNew(request) : undefined) // it opens a channel
      return home === undefined ? undefined : { kind: 'elsewhere', home }
    }
    if (isHere(id)) return undefined
    const home = homes.get(id)
    if (home !== undefined && members.at(home)) return { kind: 'elsewhere', home }
    return locateAnywhere(id, request)
  }

  /** Forwards a request; false if its home is gone and it has to be located again. */
  const forward = async (request: FrontRequest, body: Buffer | undefined, home: string): Promise<boolean> => {
    const { raw, workspace, principal, policyName, scopes, expires, token } = request
    const member = members.at(home)
    if (!member) return false
    counts.forwarded++
    const caller = { workspace, principal, policyName, address: clientAddress(request), scopes, expires, token }
    const call = new Abort() // a shutdown waits for it
    if (body) activeCalls.add(call)
    const result = await forwarder.forward(request, body, caller, member).finally(() => activeCalls.delete(call))
    if (result.kind === 'passed') return true
    if (result.kind === 'lost') {
      counts.lost++
      log.warn({ replica: home, method: raw.method }, 'replica lost while it served a forwarded request')
      if (raw.method !== 'POST') return false // repeating it changes nothing
      sendLost(request, body)
      return true
    }
    const why = result.kind === 'unsent' ? result.why : 'its clock differs'
    log.warn({ replica: home, address: member.address, reason: why }, 'replica not reached')
    if (result.kind === 'unsent' && result.isGone) {
      counts.gone++
      await members.reportDead(home)
      return false
    }
    counts.unreachable++
    sendUnreachable(request, body)
    return true
  }

  /** Rejects while the store is away. */
  const serve = async (
    request: FrontRequest,
    found: Location | Promise<Location>,
    body: Buffer | undefined,
    serveHere: ServeHere,
  ): Promise<void> => {
    const id = addresseeOf(request.raw)
    let location = await found
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (location.kind !== 'elsewhere') return serveHere(body)
      if (await forward(request, body, location.home)) return
      if (id !== undefined) homes.delete(id)
      location = id === undefined ? HERE : await locateAnywhere(id, request)
    }
    sendUnreachable(request, body)
  }

  const route: RequestRouter['route'] = async (request, found, serveHere) => {
    const { raw, response } = request
    if (found instanceof Promise) found.catch(() => {}) // it may fail while the body is read; `serve` reports it
    const body = raw.method === 'POST' ? await readBody(raw, bodyBytes) : undefined
    await serve(request, found, body, serveHere).catch((error: unknown) => {
      const shown = lookupError(error, log)
      if (!response.headersSent) sendUnreachable(request, body, shown)
    })
  }

  const routeSessionless: RequestRouter['routeSessionless'] = async (request, body, finding) => {
    const home = await finding
    return home !== undefined && (await forward(request, body, home))
  }

  return { counts, homeOfNew, find, route, routeSessionless }
}
