import type { Sse } from '../../config/snapshot.ts'
import { Quota } from '../../protocol/quota.ts'
import { isModern, isRevision, OLDEST, type Revision } from '../../protocol/revisions.ts'
import { within } from '../../std/time.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeError } from '../../wire/json-rpc.ts'
import { mintId, openId } from '../../wire/sealed-id.ts'
import type { ChannelDirectory } from '../cluster/channel-directory.ts'
import type { Location } from '../cluster/route-request.ts'
import {
  clientAddress,
  type FrontContext,
  type FrontRequest,
  type FrontState,
  requestOwner,
} from '../http/front-request.ts'
import { readQuery } from '../http/request-url.ts'
import { SSE_HEADERS } from '../http/response.ts'
import { GATEWAY_RESTARTED } from '../sessions/response-collector.ts'
import { DueQueue } from '../streams/keep-alive.ts'
import { EventOutbox } from '../streams/outbox.ts'
import { endAtExpiry } from '../streams/token-expiry.ts'
import { type ChannelEndReason, ClientChannel } from './channel.ts'
import { chooseNamedEvents, endpointOf } from './channel-events.ts'
import { OpenCalls } from './open-calls.ts'

const PING_MS = 30_000
const LOST_CALLS_MS = 2000 // for the store to tell which calls were lost
const TOTAL_SHARES = 10 // number of principals that can all use their whole quota

export type ClientChannels = ReturnType<typeof createClientChannels>

/** The open SSE channels: by id, and by the client that may post to its only channel without naming it. */
export const createClientChannels = (
  context: FrontContext,
  settings: Sse,
  { store, keys, isLasting }: FrontState,
  directory?: ChannelDirectory,
) => {
  const { keepAlive, log } = context
  const openCalls = isLasting ? new OpenCalls(store, log) : undefined
  const { principalSessions: perOwner } = context.limits
  const byId = new Map<string, ClientChannel>()
  const byClient = new Map<string, Set<ClientChannel>>() // only channels of /mcp/:workspace
  const quota = new Quota<ClientChannel>({ perOwner, total: perOwner * TOTAL_SHARES }, ({ inFlight }) =>
    Math.min(1, inFlight.size),
  )
  const pings = new DueQueue<ClientChannel>(PING_MS, channel => channel.ping() || pings.delete(channel))
  keepAlive.onTick(now => {
    pings.run(now)
    directory?.sweep(now)
  })

  const add = (channel: ClientChannel, client: string | undefined): void => {
    byId.set(channel.id, channel)
    channel.keepAliveEntry = keepAlive.add(channel)
    pings.add(channel)
    if (client === undefined) return
    byClient.set(client, (byClient.get(client) ?? new Set()).add(channel))
    directory?.opened(client, channel.id)
  }

  const remove = (channel: ClientChannel, client: string | undefined): void => {
    channel.closed()
    byId.delete(channel.id)
    quota.delete(channel)
    if (channel.keepAliveEntry) keepAlive.delete(channel.keepAliveEntry)
    pings.delete(channel)
    if (client === undefined) return
    const others = byClient.get(client)
    if (others?.delete(channel) && others.size === 0) byClient.delete(client)
    directory?.closed(client, channel.id)
  }

  /** Turns a response into a channel. */
  const open = (request: FrontRequest, openedBy: 'sse' | 'mcp'): void => {
    const { raw, response, workspace, principal, policy, scopes } = request
    if (response.destroyed) return // the client disconnected during authentication
    const id = mintId(keys.ids[0], 'channel', { home: store.members.self, workspace })
    const owner = requestOwner(request)
    const outbox = new EventOutbox(response, context, owner)
    const revision = knownRevision(raw.headers['mcp-protocol-version'])
    const caller = { workspace, principal, policy, scopes, revision: revision ?? OLDEST, capabilities: Json.empty }
    const named = chooseNamedEvents(openedBy, readQuery(raw), settings.events)
    const client = clientKey(request) // now: a closed socket has no address
    const calls = principal === undefined ? undefined : openCalls // anonymous callers cannot be told apart
    const recordCall = calls && ((call: Json) => calls.add(client, call))
    const channel = new ClientChannel({ id, caller, openedBy, named, outbox, recordCall }, context)
    channel.setAccess(request)
    const byItself = openedBy === 'mcp' ? client : undefined
    add(channel, byItself)
    for (const evicted of quota.add(owner, channel)) evicted.end('closed')
    response.on('close', () => remove(channel, byItself))
    endAtExpiry(
      response,
      () => channel.expires,
      () => channel.end('closed'),
    )
    response.writeHead(200, { ...SSE_HEADERS, 'mcp-session-id': id })
    const begin = (lost: readonly Json[]): void => {
      if (channel.isEnded) return
      response.cork()
      channel.open(endpointOf(raw, id, settings.endpoint))
      for (const call of lost) channel.respond(POSTED_TO[openedBy], encodeError(call, GATEWAY_RESTARTED))
      response.uncork()
      // A client that names its revision has reconnected: it sends no second `initialize`, and perhaps no message at all.
      if (revision) channel.listen()
    }
    if (!revision || !calls) return begin([])
    response.flushHeaders()
    void within(LOST_CALLS_MS, calls.findLost(client), () => [])
      .catch((error: unknown) => {
        log.warn({ err: error }, 'lost calls of a client not found: the store does not answer')
        return []
      })
      .then(begin)
  }

  /** The channel of an id, whichever principal it belongs to. */
  const get = (id: string): ClientChannel | undefined => {
    const channel = byId.get(id)
    return channel?.isEnded ? undefined : channel
  }

  return {
    get size() {
      return byId.size
    },
    open,
    get,
    /** The workspace of a channel of any replica. */
    workspaceOf: (id: string): string | undefined =>
      get(id)?.caller.workspace ?? openId(keys.ids, 'channel', id)?.workspace,
    /** Where a channel is; it ends with the replica that it was opened at. */
    locate: (id: string, { workspace }: FrontRequest): Location => {
      if (get(id)) return { kind: 'here' }
      const content = openId(keys.ids, 'channel', id)
      const isElsewhere = content && content.home !== store.members.self && store.members.at(content.home)
      return isElsewhere && content.workspace === workspace
        ? { kind: 'elsewhere', home: content.home }
        : { kind: 'none' }
    },
    /** The replica at which this principal has opened its only channel from this address; none for anonymous callers. */
    findHome: async (request: FrontRequest): Promise<string | undefined> =>
      request.principal === undefined ? undefined : directory?.findHome(clientKey(request)),
    /** The channel of an id, if it belongs to this principal. */
    find: (id: string, principal: string | undefined): ClientChannel | undefined => {
      const channel = get(id)
      return channel?.isOwnedBy(principal) ? channel : undefined
    },
    /** The only channel that this principal has opened at /mcp/:workspace from this address; none for anonymous callers. */
    findOnly: (request: FrontRequest): ClientChannel | undefined => {
      if (request.principal === undefined) return undefined
      const found = [...(byClient.get(clientKey(request)) ?? [])].filter(channel => !channel.isEnded)
      return found.length === 1 ? found[0] : undefined
    },
    endAll: (reason: ChannelEndReason): void => {
      for (const channel of [...byId.values()]) channel.end(reason)
    },
    countIn: (workspace: string): number =>
      [...byId.values()].filter(channel => channel.caller.workspace === workspace).length,
    /** Ends the channels of a removed workspace; those with calls in flight only if `all` is true. */
    endIn: (workspace: string, all: boolean): void => {
      for (const channel of [...byId.values()])
        if (channel.caller.workspace === workspace && (all || channel.inFlight.size === 0)) channel.end('closed')
    },
  }
}

/** Where clients post that opened their channel there, unless they tell otherwise later. */
const POSTED_TO = { sse: 'messages', mcp: 'mcp' } as const

const knownRevision = (version: string | string[] | undefined): Revision | undefined =>
  typeof version === 'string' && isRevision(version) && !isModern(version) ? version : undefined

const clientKey = (request: FrontRequest): string =>
  JSON.stringify([request.workspace, request.principal, clientAddress(request)])
