import type { Log } from '../../telemetry/log.ts'
import { POSTGRES } from '../dialect.ts'
import type { SqlDatabase } from '../sql.ts'
import { Listeners } from './listeners.ts'
import { newReplicaName } from './memory-members.ts'
import { STATE_VERSION } from './sealing.ts'
import { stateTables } from './state-schema.ts'
import { type Membership, type Replica, type ReplicaAbout, StateError } from './state-store.ts'
import type { StoreContact } from './store-contact.ts'

/** A row of the table of members, with the time of the database. */
interface MemberRow {
  readonly replica: string
  readonly address: string
  readonly labels: string
  readonly version: number
  readonly lease_until: number
  readonly now: number
}

export interface MembersOptions {
  readonly database: SqlDatabase
  readonly contact: StoreContact
  readonly log: Log
  readonly about: ReplicaAbout
  readonly beatMs: number
  readonly leaseMs: number
  /** Tells the other replicas that members have changed. */
  readonly notify: () => void
  /** Called when this replica has lost its lease, with its former name; `self` is the new one already. */
  readonly onLapsed: (former: string) => void
  /** Runs first in each heartbeat, and before a lease counts as lost: joins again if the database has lost its data. */
  readonly check: () => Promise<void>
}

/** Within this time after the database came back, a lease that has run out is not ended: its replica may be about to renew it. */
const GRACE_MS = 3000
const CLOCK_TOLERANCE_MS = 2000
const RETRY_MS = 500 // while the database is away
const LATE_MS = 20

const NOW = {
  postgres: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
  sqlite: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
}
// The only process that uses a file holds its lock, so its lease needs no renewal.
const EMBEDDED_LEASE_MS = 100 * 365 * 86_400_000

/** The members of a cluster. A replica whose row is gone has lost its lease, whatever the clocks say. */
export class SqlMembers implements Membership {
  readonly #options: MembersOptions
  readonly #left = new Listeners<string>()
  readonly #renamed = new Listeners<string>()
  readonly #now: string
  readonly #isEmbedded: boolean
  #replicas = new Map<string, Replica>()
  #about: ReplicaAbout
  #self = newReplicaName()
  #former: string | undefined
  #isJoined = false
  #isAnnounced = true // the row says what `#about` does
  #isLeaving = false
  #renewedAt = performance.now()
  #emptiedAt = Number.NEGATIVE_INFINITY
  #clockOffset: number | undefined // of the database to the monotonic clock of this process
  #nextEnd = Number.POSITIVE_INFINITY // milliseconds until the next lease of another replica ends

  constructor(options: MembersOptions) {
    this.#options = options
    this.#about = options.about
    this.#isEmbedded = options.database.dialect !== POSTGRES
    this.#now = this.#isEmbedded ? NOW.sqlite : NOW.postgres
  }

  get self(): string {
    return this.#self
  }

  at(replica: string): Replica | undefined {
    return this.#replicas.get(replica)
  }

  all(): readonly Replica[] {
    return [...this.#replicas.values()]
  }

  /** While the database is away, the next heartbeats try again. */
  async announce(about: ReplicaAbout): Promise<void> {
    this.#about = about
    this.#isAnnounced = false
    try {
      await this.#options.contact.run(() => this.join())
    } catch (error) {
      if (!(error instanceof StateError && error.reason === 'away')) throw error
    }
  }

  async reportDead(replica: string): Promise<void> {
    const { contact, log, notify } = this.#options
    if (replica === this.#self) return
    const ended = await contact.run(() => this.#end('replica = ?', replica))
    if (ended > 0) log.warn({ replica }, 'replica ended: it refused a connection')
    this.#forget(replica)
    notify()
  }

  /** Ends the lease of a replica if it has run out. */
  async endLapsed(replica: string): Promise<void> {
    if ((await this.#endLapsed('replica = ?', replica)) > 0) this.#forget(replica)
  }

  onLeft(listener: (replica: string) => void): () => void {
    return this.#left.add(listener)
  }

  onRenamed(listener: (name: string) => void): () => void {
    return this.#renamed.add(listener)
  }

  /** Writes the row of this replica. */
  async join(): Promise<void> {
    const { database, leaseMs, notify } = this.#options
    const { member } = stateTables(database)
    const { address, labels } = this.#about
    const lease = this.#isEmbedded ? EMBEDDED_LEASE_MS : leaseMs
    const sql = `INSERT INTO ${member} (replica, address, labels, version, lease_until) VALUES (?, ?, ?, ?, ${this.#now} + ${lease})
ON CONFLICT (replica) DO UPDATE SET address = excluded.address, labels = excluded.labels, lease_until = excluded.lease_until`
    await database.run(sql, this.#self, address, JSON.stringify(labels), STATE_VERSION)
    this.#isJoined = true
    this.#isAnnounced = true
    this.#renewedAt = performance.now()
    await this.refresh()
    notify()
  }

  /** Whether the database has lost its data just now, so that the replicas are writing it again. */
  get isEmptied(): boolean {
    return performance.now() - this.#emptiedAt < GRACE_MS
  }

  /** Joins a database that has lost its data. The other replicas are known until they have done so, too. */
  async joinEmptied(): Promise<void> {
    this.#emptiedAt = performance.now()
    await this.join()
  }

  /** Renews the lease and looks at those of the others. Returns the milliseconds until the next time. */
  async beat(): Promise<number> {
    const { contact, beatMs } = this.#options
    if (this.#missedLease()) this.#lapse()
    try {
      await contact.attempt(() => this.#renew())
      return Math.max(LATE_MS, Math.min(beatMs, this.#nextEnd + LATE_MS))
    } catch {
      return Math.min(RETRY_MS, beatMs) // the log has the reason
    }
  }

  /** Reads the members. */
  async refresh(): Promise<void> {
    const { database, contact, check } = this.#options
    const { member } = stateTables(database)
    const [own, wasJoined] = [this.#self, this.#isJoined] // this replica may join while the rows are read
    const rows = await database.all<MemberRow>(`SELECT *, ${this.#now} AS now FROM ${member}`)
    if (wasJoined && !this.isEmptied && !rows.some(({ replica }) => replica === own)) {
      await check() // the row may be gone with all other data
      if (this.isEmptied) return
    }
    const now = rows[0]?.now ?? 0
    const offset = now - performance.now()
    if (Math.abs(offset - (this.#clockOffset ?? offset)) > CLOCK_TOLERANCE_MS) contact.unsettle()
    this.#clockOffset = offset
    const others = rows.filter(({ replica }) => replica !== this.#self)
    this.#nextEnd = Math.min(...others.map(row => row.lease_until - now).filter(left => left > 0))
    const former = this.#replicas
    this.#replicas = new Map([
      ...(this.isEmptied ? former : []),
      ...rows.map(row => [row.replica, replicaOf(row)] as const),
    ])
    if (wasJoined && own === this.#self && !this.#replicas.has(own)) this.#lapse()
    for (const replica of former.keys()) if (!this.#replicas.has(replica) && replica !== own) this.#left.call(replica)
  }

  /** This replica is about to leave: if the others end its lease before, it does not join again. */
  retire(): void {
    this.#isLeaving = true
  }

  /** Removes the row of this replica. */
  async leave(): Promise<void> {
    await this.#end('replica = ?', this.#self)
    this.#isJoined = false
    this.#options.notify()
  }

  async #renew(): Promise<void> {
    const { database, contact, leaseMs, check } = this.#options
    const { member } = stateTables(database)
    await check()
    if (!this.#isJoined && this.#isLeaving) return
    if (!this.#isJoined) {
      if (this.#former !== undefined) await this.#end('replica = ?', this.#former)
      await this.join()
      return this.#renamed.call(this.#self)
    }
    if (!this.#isAnnounced) await this.join()
    const renew = `UPDATE ${member} SET lease_until = ${this.#now} + ${leaseMs} WHERE replica = ?`
    if (this.#isEmbedded && contact.isAway) await this.join() // only a write shows that the disk has room again
    const isRenewed = this.#isEmbedded || (await database.run(renew, this.#self)) > 0
    if (isRenewed) this.#renewedAt = performance.now()
    await this.#endLapsed('replica <> ?', this.#self)
    await this.refresh()
    if (!this.#isJoined) await this.#renew() // the lease was lost
  }

  /** A replica that hung may meet requests for sessions that others have taken; it must not wait for the database to learn that. */
  #missedLease(): boolean {
    const { leaseMs, contact } = this.#options
    const isAlone = this.#replicas.size < 2
    return (
      this.#isJoined &&
      !this.#isEmbedded &&
      !contact.isAway &&
      !isAlone &&
      performance.now() - this.#renewedAt > leaseMs
    )
  }

  #lapse(): void {
    this.#isJoined = false
    if (this.#isLeaving) return
    const former = this.#self
    this.#former = former
    this.#self = newReplicaName()
    this.#options.log.warn({ replica: this.#self, former }, 'lease lost; the replica joins again under a new name')
    this.#options.onLapsed(former)
  }

  /** Ends leases that have run out. After a step of the clock all seem to have: the statement itself looks at the time. */
  async #endLapsed(condition: string, replica: string): Promise<number> {
    if (this.#clockOffset === undefined || this.#options.contact.steadyMs <= GRACE_MS) return 0
    const latest = Math.round(performance.now() + this.#clockOffset + CLOCK_TOLERANCE_MS)
    return this.#end(`${condition} AND lease_until <= ${this.#now} AND ${this.#now} < ?`, replica, latest)
  }

  #end(condition: string, ...values: readonly (string | number)[]): Promise<number> {
    const { database } = this.#options
    return database.run(`DELETE FROM ${stateTables(database).member} WHERE ${condition}`, ...values)
  }

  #forget(replica: string): void {
    if (this.#replicas.delete(replica)) this.#left.call(replica)
  }
}

const replicaOf = ({ replica, address, labels, version }: MemberRow): Replica => ({
  replica,
  address,
  labels: JSON.parse(labels) as string[],
  version,
})
