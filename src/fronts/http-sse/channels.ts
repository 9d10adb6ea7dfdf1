import { randomBytes } from 'node:crypto'
import type { Sse } from '../../config/snapshot.ts'
import { Quota } from '../../protocol/quota.ts'
import { isModern, isRevision, OLDEST, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { readQuery } from '../http/request-query.ts'
import { SSE_HEADERS } from '../http/response.ts'
import { isOwner, quotaOwner } from '../sessions/owner.ts'
import { DueQueue } from '../streams/due-queue.ts'
import { Channel, type EndReason } from './channel.ts'
import { endpointOf } from './channel-events.ts'
import { Outbox } from './channel-outbox.ts'
import { chooseNamedEvents } from './named-events.ts'

const PING_MS = 30_000
const TOTAL_SHARES = 10 // so many principals can have all the channels they may have

/** The open SSE channels: by id, by who may write to them without one, and by when they need a sign of life. */
export class Channels {
  readonly #house: FrontContext
  readonly #settings: Sse
  readonly #byId = new Map<string, Channel>()
  readonly #byGuest = new Map<string, Set<Channel>>() // those of /mcp/:workspace
  readonly #quota: Quota<Channel>
  readonly #comments: DueQueue<Channel>
  readonly #pings = new DueQueue<Channel>(PING_MS, channel => channel.ping() || this.#pings.delete(channel))

  constructor(house: FrontContext, settings: Sse) {
    this.#house = house
    this.#settings = settings
    const { principalSessions: perOwner } = house.limits
    this.#quota = new Quota({ perOwner, total: perOwner * TOTAL_SHARES }, ({ running }) => Math.min(1, running.size))
    this.#comments = new DueQueue(house.limits.keepAliveMs, channel => channel.keepAlive())
    house.ticker.each(now => {
      this.#comments.run(now)
      this.#pings.run(now)
    })
  }

  get size(): number {
    return this.#byId.size
  }

  /** Turns a response into a channel of the visitor's. */
  open(visit: FrontRequest, openedBy: 'sse' | 'mcp'): void {
    const { request, response, workspace, principal, policy } = visit
    if (response.destroyed) return // left while we looked who it was
    const id = randomBytes(32).toString('hex') // clients cut it out of the endpoint, not all with care for `-`
    const owner = quotaOwner(visit)
    const outbox = new Outbox(response, this.#house, owner)
    const revision = knownRevision(request.headers['mcp-protocol-version'])
    const caller = { workspace, principal, policy, revision: revision ?? OLDEST, capabilities: Json.empty }
    const named = chooseNamedEvents(openedBy, readQuery(request), this.#settings.events)
    const channel = new Channel({ id, caller, openedBy, named, outbox }, this.#house)
    const guest = openedBy === 'mcp' ? guestOf(visit) : undefined // now: a closed socket forgets its address
    this.#add(channel, guest)
    for (const evicted of this.#quota.add(owner, channel)) evicted.end('closed')
    response.on('close', () => this.#remove(channel, guest))
    response.writeHead(200, { ...SSE_HEADERS, 'mcp-session-id': id })
    response.cork()
    channel.open(endpointOf(request, id, this.#settings.endpoint))
    response.uncork()
    // Only a client that comes back knows its revision already; it does not shake hands again, and may only listen.
    if (revision) channel.begin()
  }

  /** The channel of that id, whoever it belongs to. */
  peek(id: string): Channel | undefined {
    const channel = this.#byId.get(id)
    return channel?.isEnded ? undefined : channel
  }

  /** The channel of that id, if it belongs to this principal. */
  find(id: string, principal: string | undefined): Channel | undefined {
    const channel = this.peek(id)
    return channel && isOwner(channel, principal, this.#house.log) ? channel : undefined
  }

  /** The one channel that this visitor, from this address, has opened at /mcp/:workspace; nobody unknown has one. */
  sole(visit: FrontRequest): Channel | undefined {
    if (visit.principal === undefined) return undefined
    const open = [...(this.#byGuest.get(guestOf(visit)) ?? [])].filter(channel => !channel.isEnded)
    return open.length === 1 ? open[0] : undefined
  }

  endAll(reason: EndReason): void {
    for (const channel of [...this.#byId.values()]) channel.end(reason)
  }

  /** Ends the channels of a workspace that is no more; those with calls under way only if `all` are to. */
  endIn(workspace: string, all: boolean): void {
    for (const channel of [...this.#byId.values()])
      if (channel.caller.workspace === workspace && (all || channel.running.size === 0)) channel.end('closed')
  }

  #add(channel: Channel, guest: string | undefined): void {
    this.#byId.set(channel.id, channel)
    this.#comments.add(channel)
    this.#pings.add(channel)
    if (guest === undefined) return
    const others = this.#byGuest.get(guest)
    if (others) others.add(channel)
    else this.#byGuest.set(guest, new Set([channel]))
  }

  #remove(channel: Channel, guest: string | undefined): void {
    channel.left()
    this.#byId.delete(channel.id)
    this.#quota.delete(channel)
    this.#comments.delete(channel)
    this.#pings.delete(channel)
    if (guest === undefined) return
    const others = this.#byGuest.get(guest)
    if (others?.delete(channel) && others.size === 0) this.#byGuest.delete(guest)
  }
}

const knownRevision = (version: string | string[] | undefined): Revision | undefined =>
  typeof version === 'string' && isRevision(version) && !isModern(version) ? version : undefined

const guestOf = ({ workspace, principal, request }: FrontRequest): string =>
  JSON.stringify([workspace, principal, request.socket.remoteAddress])
