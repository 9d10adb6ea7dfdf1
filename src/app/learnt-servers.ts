import type { ServerConfig } from '../config/snapshot.ts'
import type { ReadLists } from '../health/probe-server.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import { sendRequest } from '../protocol/send-request.ts'
import { Semaphore } from '../std/semaphore.ts'
import type { Log } from '../telemetry/log.ts'
import {
  type LearntClient,
  type LearntServer,
  type LearntSource,
  learnServer,
} from '../workspace/catalog/learnt-server.ts'
import { type ClientLists, LearntClients } from './learnt-clients.ts'
import type { LearntStore } from './learnt-files.ts'
import { decodeLearnt, encodeLearnt, fingerprintOf } from './learnt-format.ts'

const SAVE_MS = 500 // changes within this time are stored together
const OLD_MS = 10 * 60_000 // what is older is read again when a caller is served from it
const OLD_PROCESS_MS = 24 * 60 * 60_000 // the same for a server that has to be started for that
const MOST_READINGS = 2 // at the same time, of servers as clients with capabilities see them

interface LearntEntry {
  readonly listeners: Set<() => void>
  learnt: LearntServer | undefined
  readAt: number // when the latest reading was begun
  stored: Buffer | undefined // the text in the store
  refresh: (() => void) | undefined
  restored: readonly ClientLists[] // read from the store, for `clients`
  clients: LearntClients | undefined // of a process
}

/** How a server is read, and where the result is kept. */
interface LearntAccess {
  readonly source: LearntSource
  readonly readLists: ReadLists
}

/** What the gateway itself has learnt of its servers, across changes of the configuration and restarts. */
export class LearntServers {
  readonly #store: LearntStore | undefined // undefined: nothing outlives the process
  readonly #log: Log
  readonly #readings = new Semaphore(MOST_READINGS)
  readonly #entries = new Map<string, LearntEntry>() // by the fingerprint of the configuration
  #unsaved = new Set<string>()
  #saving: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(store: LearntStore | undefined, log: Log) {
    this.#store = store
    this.#log = log
  }

  /** Reads what was learnt of these servers before the gateway was started. */
  async load(configs: Iterable<ServerConfig>): Promise<void> {
    await Promise.all([...configs].filter(isShared).map(config => this.#load(config)))
  }

  /** Undefined for a server whose lists may depend on the caller: it is never learnt. */
  accessTo(config: ServerConfig, upstream: Upstream): LearntAccess | undefined {
    if (!isShared(config)) return undefined
    const fingerprint = fingerprintOf(config)
    const entry = this.#entryOf(fingerprint)
    let setReached: (self: Caller) => void = () => {}
    const reached = new Promise<Caller>(resolve => {
      setReached = resolve
    })
    if (config.kind === 'process') {
      const read = async (client: LearntClient): Promise<LearntServer> => {
        const { isHealthCheck: _, ...anonymous } = await reached // it must not be given the process of a user
        const release = await this.#readings.acquire()
        try {
          return await learnFrom(upstream, { ...anonymous, ...client })
        } finally {
          release()
        }
      }
      const options = {
        read,
        plain: () => entry.learnt,
        onLearnt: () => this.#announce(fingerprint, entry),
        onFailed: (error: unknown) => this.#log.debug({ err: error, server: config.name }, 'server was not read'),
      }
      if (entry.clients) entry.clients.use(options)
      else entry.clients = new LearntClients(options, entry.restored)
    }
    const readLists: ReadLists = async (peer, self, discovered) => {
      setReached(self)
      entry.refresh = () => {
        entry.readAt = Date.now()
        learnFrom(upstream, self).then(
          learnt => this.#put(fingerprint, learnt),
          error => this.#log.debug({ err: error, server: config.name }, 'server was not read again'),
        )
      }
      const learnt = await learnServer(peer, self, discovered)
      // A client may have begun to use the process meanwhile: its lists may be for that client only.
      if (peer.hasServedUsers) entry.refresh()
      else this.#put(fingerprint, learnt)
      if (!learnt.lists.tools) throw new Error('the tools could not be listed')
      return learnt.lists.tools.items.map(({ native }) => native)
    }
    const oldMs = config.kind === 'process' ? OLD_PROCESS_MS : OLD_MS
    const get = (): LearntServer | undefined => {
      if (entry.learnt && Date.now() - entry.readAt > oldMs) entry.refresh?.()
      return entry.learnt
    }
    const onLearnt = (listener: () => void): (() => void) => {
      entry.listeners.add(listener)
      return () => void entry.listeners.delete(listener)
    }
    return { source: { get, byClient: entry.clients, onLearnt }, readLists }
  }

  /** Drops what was learnt of all other servers; the store keeps it for a while. */
  keepOnly(configs: Iterable<ServerConfig>): void {
    const kept = new Set([...configs].filter(isShared).map(fingerprintOf))
    for (const fingerprint of this.#entries.keys()) if (!kept.has(fingerprint)) this.#entries.delete(fingerprint)
  }

  /** Resolves when everything is stored. */
  close(): Promise<void> {
    return this.#save()
  }

  async #load(config: ServerConfig): Promise<void> {
    const fingerprint = fingerprintOf(config)
    if (this.#entries.get(fingerprint)?.learnt) return
    const bytes = await this.#store?.load(fingerprint)
    if (!bytes) return
    const learnt = decodeLearnt(fingerprint, bytes)
    if (typeof learnt === 'string')
      return this.#log.warn({ server: config.name, reason: learnt }, 'stored lists of a server were ignored')
    const entry = this.#entryOf(fingerprint)
    if (entry.learnt) return
    entry.stored = bytes
    entry.learnt = learnt.plain
    entry.readAt = Date.now()
    entry.restored = learnt.clients
    for (const listener of [...entry.listeners]) listener()
  }

  #put(fingerprint: string, learnt: LearntServer): void {
    const entry = this.#entries.get(fingerprint)
    if (!entry) return // the server was removed meanwhile
    const before = entry.learnt
    const lists = before?.revision === learnt.revision ? before.lists : {}
    entry.learnt = { ...learnt, lists: { ...lists, ...learnt.lists } }
    entry.readAt = Date.now()
    entry.clients?.plainRead(before, entry.learnt)
    this.#announce(fingerprint, entry)
  }

  #announce(fingerprint: string, entry: LearntEntry): void {
    for (const listener of [...entry.listeners]) listener()
    if (!this.#store) return
    this.#unsaved.add(fingerprint)
    this.#timer ??= setTimeout(() => void this.#save(), SAVE_MS).unref()
  }

  /** One server after the other: storing is not urgent, and must not delay calls. */
  #save(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const unsaved = this.#unsaved
    this.#unsaved = new Set()
    this.#saving = this.#saving.then(async () => {
      for (const fingerprint of unsaved) await this.#saveOne(fingerprint)
    })
    return this.#saving
  }

  async #saveOne(fingerprint: string): Promise<void> {
    const entry = this.#entries.get(fingerprint)
    if (!entry?.learnt) return
    const bytes = encodeLearnt(fingerprint, entry.learnt, entry.clients?.all ?? [])
    if (entry.stored?.equals(bytes)) return
    entry.stored = bytes
    await this.#store?.save(fingerprint, bytes)
  }

  #entryOf(fingerprint: string): LearntEntry {
    const entry: LearntEntry = this.#entries.get(fingerprint) ?? {
      listeners: new Set(),
      learnt: undefined,
      readAt: 0,
      stored: undefined,
      refresh: undefined,
      restored: [],
      clients: undefined,
    }
    this.#entries.set(fingerprint, entry)
    return entry
  }
}

/**
 * Servers that cannot tell callers apart: every caller uses the same headers or variables. A server inside the gateway is
 * given the principal, and answers at once anyway.
 */
const isShared = (config: ServerConfig): boolean =>
  !config.disabled &&
  (config.kind === 'remote' || config.kind === 'process' || config.kind === 'openapi') &&
  config.personal === undefined

/** Reads a server on a peer that no client uses, if need be on a process of its own. */
const learnFrom = async (upstream: Upstream, self: Caller): Promise<LearntServer> => {
  const peer = await upstream.open(self)
  const release = peer.hold?.()
  try {
    const discovered = await sendRequest(peer.dispatch, { ...self, revision: peer.revision }, 'server/discover')
    const learnt = await learnServer(peer, self, discovered)
    if (!self.isHealthCheck || !peer.hasServedUsers) return learnt
  } finally {
    release?.()
  }
  // Only a health check may be given the process of a user; an anonymous caller has one of its own.
  const { isHealthCheck: _, ...anonymous } = self
  return learnFrom(upstream, anonymous)
}
