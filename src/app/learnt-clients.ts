import { isModern } from '../protocol/revisions.ts'
import { publicKeyOf } from '../workspace/catalog/cache-owner.ts'
import { isSameServer, type LearntClient, type LearntServer } from '../workspace/catalog/learnt-server.ts'

const MOST_CLIENTS = 16 // sets of capabilities; only so many kinds of clients are in use at a time
const RETRY_MS = 10 * 60_000 // after a reading that failed

/** What a server lists to clients with certain capabilities. */
export interface ClientLists {
  readonly client: LearntClient
  readonly own: LearntServer | undefined // undefined: the same as to a client without capabilities
}

interface LearntClientsOptions {
  /** What the server lists to a client without capabilities. */
  readonly plain: () => LearntServer | undefined
  /** Reads the server as that client sees it. */
  readonly read: (client: LearntClient) => Promise<LearntServer>
  readonly onLearnt: () => void
  readonly onFailed: (error: unknown) => void
}

/** What the gateway has learnt of one server as clients with other capabilities see it; each set is read once. */
export class LearntClients {
  readonly #lists = new Map<string, ClientLists>() // the oldest first
  readonly #pending = new Set<string>()
  readonly #failedAt = new Map<string, number>()
  #options: LearntClientsOptions

  /** `stored` was learnt before the gateway was started. */
  constructor(options: LearntClientsOptions, stored: readonly ClientLists[] = []) {
    this.#options = options
    for (const lists of stored) this.#put(this.#keyOf(publicKeyOf(lists.client)), lists)
  }

  get all(): readonly ClientLists[] {
    return [...this.#lists.values()]
  }

  /** The server is reached in another way from now on. */
  use(options: LearntClientsOptions): void {
    this.#options = options
    this.#pending.clear()
  }

  get(publicKey: string): LearntServer | undefined {
    const known = this.#lists.get(this.#keyOf(publicKey))
    return known && (known.own ?? this.#options.plain())
  }

  /** Reads the server as that client sees it, unless that is known, under way or has failed lately. */
  learn(client: LearntClient): void {
    const key = this.#keyOf(publicKeyOf(client))
    const failedAt = this.#failedAt.get(key) ?? Number.NEGATIVE_INFINITY
    if (this.#lists.has(key) || !this.#options.plain() || Date.now() - failedAt < RETRY_MS) return
    this.#read(key, { revision: client.revision, capabilities: client.capabilities.compact() })
  }

  /** The server was read again without capabilities: if that has changed, what other clients see may have, too. */
  plainRead(before: LearntServer | undefined, now: LearntServer): void {
    const isSame = before !== undefined && isSameServer(before, now)
    for (const [key, { client, own }] of this.#lists)
      if (!isSame) this.#read(key, client)
      else if (own) this.#lists.set(key, { client, own: confirmed(own) })
  }

  #read(key: string, client: LearntClient): void {
    if (this.#pending.has(key)) return
    this.#pending.add(key)
    this.#options
      .read(client)
      .then(
        learnt => {
          const plain = this.#options.plain()
          this.#failedAt.delete(key)
          this.#put(key, { client, own: plain && isSameServer(plain, learnt) ? undefined : learnt })
          this.#options.onLearnt()
        },
        (error: unknown) => {
          if (this.#failedAt.size >= MOST_CLIENTS) this.#failedAt.clear()
          this.#failedAt.set(key, Date.now())
          this.#options.onFailed(error)
        },
      )
      .finally(() => this.#pending.delete(key))
  }

  #put(key: string, lists: ClientLists): void {
    this.#lists.delete(key)
    const [oldest] = this.#lists.keys()
    if (this.#lists.size >= MOST_CLIENTS && oldest !== undefined) this.#lists.delete(oldest)
    this.#lists.set(key, lists)
  }

  /** A legacy server lists alike to clients of both eras. */
  #keyOf(publicKey: string): string {
    const revision = this.#options.plain()?.revision
    return revision && !isModern(revision) ? publicKey.slice(publicKey.indexOf(' ') + 1) : publicKey
  }
}

/** Lists that were stored before the gateway was started count as read now. */
const confirmed = (learnt: LearntServer): LearntServer => {
  const fetchedAt = Date.now()
  const lists = Object.entries(learnt.lists).map(([kind, list]) => [
    kind,
    { ...list, hints: list.hints ?? { fetchedAt, ttlMs: undefined, isPublic: false } },
  ])
  return { ...learnt, lists: Object.fromEntries(lists) }
}
