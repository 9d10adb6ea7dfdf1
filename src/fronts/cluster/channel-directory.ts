import type { Claim, StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'

interface ClientEntry {
  readonly channels: Set<string>
  claim: Claim | undefined
  writing: Promise<void> // the writes of one entry follow each other
}

const LIFETIME_MS = 24 * 60 * 60_000
const SWEEP_MS = 60_000
const SWEPT_AT_ONCE = 100
const KIND = 'origin'

/**
 * Which clients have channels at which replica, for clients that post without naming their channel. Each replica writes
 * a record of its own for each client, so that no two replicas write the same one.
 */
export class ChannelDirectory {
  readonly #store: StateStore
  readonly #log: Log
  readonly #own = new Map<string, ClientEntry>() // by client
  #sweptAt = Date.now()

  constructor(store: StateStore, log: Log) {
    this.#store = store
    this.#log = log
  }

  opened(client: string, channel: string): void {
    const entry = this.#own.get(client) ?? { channels: new Set(), claim: undefined, writing: Promise.resolve() }
    this.#own.set(client, entry)
    entry.channels.add(channel)
    this.#schedule(client, entry)
  }

  closed(client: string, channel: string): void {
    const entry = this.#own.get(client)
    if (entry?.channels.delete(channel)) this.#schedule(client, entry)
  }

  /** The replica that holds the only channel of a client; undefined if it has none, or several. */
  async findHome(client: string): Promise<string | undefined> {
    if (this.#own.get(client)?.channels.size) return undefined
    const { members } = this.#store
    const others = members.all().filter(({ replica }) => replica !== members.self)
    const records = await Promise.all(others.map(({ replica }) => this.#store.read(KIND, recordId(replica, client))))
    const counts = records.map(record => (record ? Number(record.body.toString()) : 0))
    const total = counts.reduce((sum, count) => sum + count, 0)
    return total === 1 ? others[counts.indexOf(1)]?.replica : undefined
  }

  /** Removes what replicas that are gone have left. */
  sweep(now: number): void {
    if (now - this.#sweptAt < SWEEP_MS) return
    this.#sweptAt = now
    this.#removeAbandoned().catch((error: unknown) => this.#log.debug({ err: error }, 'channels of lost replicas kept'))
  }

  async #removeAbandoned(): Promise<void> {
    for (const why of ['expired', 'orphaned'] as const)
      for (const held of await this.#store.takeAbandoned(KIND, why, SWEPT_AT_ONCE)) await this.#store.remove(held)
  }

  #schedule(client: string, entry: ClientEntry): void {
    entry.writing = entry.writing
      .then(() => this.#write(client, entry))
      .catch((error: unknown) => this.#log.debug({ err: error }, 'channels of a client not stored'))
      .then(() => {
        // Only now: a channel that opens during the removal must be stored after it.
        if (entry.channels.size === 0 && entry.claim === undefined) this.#own.delete(client)
      })
  }

  async #write(client: string, entry: ClientEntry): Promise<void> {
    const [{ claim }, count] = [entry, entry.channels.size]
    const options = { expires: Date.now() + LIFETIME_MS }
    const body = Buffer.from(String(count))
    if (count > 0 && claim && (await this.#store.write(claim, body, options))) return
    if (count > 0)
      entry.claim = await this.#store.create(KIND, recordId(this.#store.members.self, client), body, options)
    else if (claim) {
      entry.claim = undefined
      await this.#store.remove(claim)
    }
  }
}

const recordId = (replica: string, client: string): string => `channels ${replica} ${client}`
