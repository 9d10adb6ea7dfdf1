import { perDialect } from '../dialect.ts'
import type { SqlDatabase } from '../sql.ts'
import { checkDocument } from './limits.ts'
import type { Sealing } from './sealing.ts'
import { stateTables } from './state-schema.ts'
import type { Shared, SharedDocument } from './state-store.ts'
import type { StoreContact } from './store-contact.ts'
import type { Topics } from './wake.ts'

export interface SharedOptions {
  readonly database: SqlDatabase
  readonly contact: StoreContact
  readonly sealing: Sealing
  readonly topics: Topics
}

const KEPT_MS = 60 * 60_000 // counters of a window
const SWEEP_MS = 60_000

const ADD = perDialect(dialect => {
  const { rate } = stateTables({ dialect })
  return `INSERT INTO ${rate} (key, started, count) VALUES (?, ?, ?)
ON CONFLICT (started, key) DO UPDATE SET count = ${rate}.count + excluded.count RETURNING count`
})

/** Values that belong to all replicas. Names are stored as hashes. */
export const createSqlShared = ({ database, contact, sealing, topics }: SharedOptions): Shared => {
  const { rate, document } = stateTables(database)
  let sweptAt = Date.now()

  const count = async (window: number, spent: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> => {
    // In the same order everywhere, so that two replicas never wait for each other.
    const keys = [...spent].map(([key, by]) => ({ key, by, name: sealing.nameOf(`rate:${key}`) }))
    keys.sort((a, b) => (a.name < b.name ? -1 : 1))
    return database.transaction(async sql => {
      const sums = new Map<string, number>()
      for (const { key, by, name } of keys) {
        const row = await sql.get<{ count: number }>(ADD(sql), name, window, by)
        sums.set(key, Number(row?.count ?? by))
      }
      return sums
    })
  }
  const sweep = async (window: number): Promise<void> => {
    if (Math.abs(Date.now() - sweptAt) < SWEEP_MS) return
    sweptAt = Date.now()
    await database.run(`DELETE FROM ${rate} WHERE started < ?`, window - KEPT_MS)
  }
  return {
    count: (window, spent) =>
      contact.run(async () => {
        await sweep(window)
        return count(window, spent)
      }),
    document: async name => {
      const id = sealing.nameOf(`document:${name}`)
      const row = await contact.run(() =>
        database.get<SharedDocument>(`SELECT version, body FROM ${document} WHERE name = ?`, id),
      )
      const body = row && sealing.open(`document:${id}`, row.body)
      return row && body && { version: row.version, body }
    },
    writeDocument: async (name, body, version) => {
      checkDocument(name, body)
      const id = sealing.nameOf(`document:${name}`)
      const sealed = sealing.seal(`document:${id}`, body)
      const insert = `INSERT INTO ${document} (name, version, body) VALUES (?, 1, ?) ON CONFLICT (name) DO NOTHING`
      const update = `UPDATE ${document} SET version = version + 1, body = ? WHERE name = ? AND version = ?`
      const changed = await contact.run(() =>
        version === 0 ? database.run(insert, id, sealed) : database.run(update, sealed, id, version),
      )
      if (changed > 0) topics.notify(name)
      return changed > 0
    },
    notify: topic => topics.notify(topic),
    on: (topic, listener) => topics.on(topic, listener),
  }
}
