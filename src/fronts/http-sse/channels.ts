import { randomBytes } from 'node:crypto'
import type { Sse } from '../../config/snapshot.ts'
import { Quota } from '../../protocol/quota.ts'
import { isModern, isRevision, OLDEST, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { type FrontContext, type FrontRequest, requestOwner } from '../http/front-request.ts'
import { readQuery } from '../http/request-url.ts'
import { SSE_HEADERS } from '../http/response.ts'
import { DueQueue } from '../streams/keep-alive.ts'
import { EventOutbox } from '../streams/outbox.ts'
import { type ChannelEndReason, ClientChannel } from './channel.ts'
import { chooseNamedEvents, endpointOf } from './channel-events.ts'

const PING_MS = 30_000
const TOTAL_SHARES = 10 // number of principals that can all use their whole quota

/** The open SSE channels: by id, and by the client that may post to its only channel without naming it. */
export class ClientChannels {
  readonly #context: FrontContext
  readonly #settings: Sse
  readonly #byId = new Map<string, ClientChannel>()
  readonly #byClient = new Map<string, Set<ClientChannel>>() // only channels of /mcp/:workspace
  readonly #quota: Quota<ClientChannel>
  readonly #pings = new DueQueue<ClientChannel>(PING_MS, channel => channel.ping() || this.#pings.delete(channel))

  constructor(context: FrontContext, settings: Sse) {
    this.#context = context
    this.#settings = settings
    const { principalSessions: perOwner } = context.limits
    this.#quota = new Quota({ perOwner, total: perOwner * TOTAL_SHARES }, ({ inFlight }) => Math.min(1, inFlight.size))
    context.keepAlive.onTick(now => this.#pings.run(now))
  }

  get size(): number {
    return this.#byId.size
  }

  /** Turns a response into a channel. */
  open(request: FrontRequest, openedBy: 'sse' | 'mcp'): void {
    const { raw, response, workspace, principal, policy } = request
    if (response.destroyed) return // the client disconnected during authentication
    const id = randomBytes(32).toString('hex') // hex: some clients cut the id out of the endpoint at a `-`
    const owner = requestOwner(request)
    const outbox = new EventOutbox(response, this.#context, owner)
    const revision = knownRevision(raw.headers['mcp-protocol-version'])
    const caller = { workspace, principal, policy, revision: revision ?? OLDEST, capabilities: Json.empty }
    const named = chooseNamedEvents(openedBy, readQuery(raw), this.#settings.events)
    const channel = new ClientChannel({ id, caller, openedBy, named, outbox }, this.#context)
    const client = openedBy === 'mcp' ? clientKey(request) : undefined // now: a closed socket has no address
    this.#add(channel, client)
    for (const evicted of this.#quota.add(owner, channel)) evicted.end('closed')
    response.on('close', () => this.#remove(channel, client))
    response.writeHead(200, { ...SSE_HEADERS, 'mcp-session-id': id })
    response.cork()
    channel.open(endpointOf(raw, id, this.#settings.endpoint))
    response.uncork()
    // A client that names its revision has reconnected: it sends no second `initialize`, and perhaps no message at all.
    if (revision) channel.listen()
  }

  /** The channel of an id, whichever principal it belongs to. */
  get(id: string): ClientChannel | undefined {
    const channel = this.#byId.get(id)
    return channel?.isEnded ? undefined : channel
  }

  /** The channel of an id, if it belongs to this principal. */
  find(id: string, principal: string | undefined): ClientChannel | undefined {
    const channel = this.get(id)
    return channel?.isOwnedBy(principal) ? channel : undefined
  }

  /** The only channel that this principal has opened at /mcp/:workspace from this address; none for anonymous callers. */
  findOnly(request: FrontRequest): ClientChannel | undefined {
    if (request.principal === undefined) return undefined
    const open = [...(this.#byClient.get(clientKey(request)) ?? [])].filter(channel => !channel.isEnded)
    return open.length === 1 ? open[0] : undefined
  }

  endAll(reason: ChannelEndReason): void {
    for (const channel of [...this.#byId.values()]) channel.end(reason)
  }

  /** Ends the channels of a removed workspace; those with calls in flight only if `all` is true. */
  endIn(workspace: string, all: boolean): void {
    for (const channel of [...this.#byId.values()])
      if (channel.caller.workspace === workspace && (all || channel.inFlight.size === 0)) channel.end('closed')
  }

  #add(channel: ClientChannel, client: string | undefined): void {
    this.#byId.set(channel.id, channel)
    this.#context.keepAlive.add(channel)
    this.#pings.add(channel)
    if (client === undefined) return
    const others = this.#byClient.get(client)
    if (others) others.add(channel)
    else this.#byClient.set(client, new Set([channel]))
  }

  #remove(channel: ClientChannel, client: string | undefined): void {
    channel.closed()
    this.#byId.delete(channel.id)
    this.#quota.delete(channel)
    this.#context.keepAlive.delete(channel)
    this.#pings.delete(channel)
    if (client === undefined) return
    const others = this.#byClient.get(client)
    if (others?.delete(channel) && others.size === 0) this.#byClient.delete(client)
  }
}

const knownRevision = (version: string | string[] | undefined): Revision | undefined =>
  typeof version === 'string' && isRevision(version) && !isModern(version) ? version : undefined

const clientKey = ({ workspace, principal, raw }: FrontRequest): string =>
  JSON.stringify([workspace, principal, raw.socket.remoteAddress])
