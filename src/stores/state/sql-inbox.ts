import { perDialect } from '../dialect.ts'
import type { SqlDatabase } from '../sql.ts'
import type { HeldRecords } from './held-records.ts'
import { checkMessage, STATE_LIMITS } from './limits.ts'
import type { Sealing } from './sealing.ts'
import { ownedEpochs } from './sql-records.ts'
import { stateTables } from './state-schema.ts'
import { type Inbox, inboxTopic, StateError } from './state-store.ts'
import type { StoreContact } from './store-contact.ts'

export interface InboxOptions {
  readonly database: SqlDatabase
  readonly contact: StoreContact
  readonly sealing: Sealing
  readonly held: HeldRecords
  readonly self: () => string
  readonly notify: (topic: string) => void
}

const SIZE = perDialect(dialect => {
  const { inbox, record } = stateTables({ dialect })
  return `SELECT (SELECT count(*) FROM ${record} WHERE id = ?1) AS found,
(SELECT count(*) FROM ${inbox} WHERE id = ?1) AS messages,
(SELECT coalesce(sum(length(data)), 0) FROM ${inbox} WHERE id = ?1) AS bytes`
})

const HAS_MESSAGES = perDialect(
  dialect => `SELECT 1 AS found FROM ${stateTables({ dialect }).inbox} WHERE id = ? LIMIT 1`,
)

/** Messages for the homes of records, oldest first. */
export const createSqlInbox = (options: InboxOptions): Inbox => {
  const { database, contact, sealing, held, self, notify } = options
  const { inbox } = stateTables(database)
  return {
    put: async (kind, id, data) => {
      checkMessage(data)
      const name = sealing.recordName(kind, id)
      const sealed = sealing.seal(`inbox:${name}`, data)
      await contact.run(async () => {
        const size = await database.get<Record<'found' | 'messages' | 'bytes', number | string>>(SIZE(database), name)
        if (!size || Number(size.found) === 0) return
        if (Number(size.messages) >= STATE_LIMITS.messages || Number(size.bytes) >= STATE_LIMITS.stream)
          throw new StateError('limit', 'The inbox is full.')
        await database.run(`INSERT INTO ${inbox} (id, data) VALUES (?, ?)`, name, sealed)
      })
      notify(inboxTopic(kind, id))
    },
    drain: async claim => {
      const record = held.of(claim)
      if (!record) return []
      // Homes also look without cause: most find nothing, and need no transaction for it.
      if (!(await contact.run(() => database.get(HAS_MESSAGES(database), record.id)))) return []
      const rows = await contact.run(() =>
        database.transaction(async sql => {
          const epochs = await ownedEpochs(sql, self(), [record.id])
          if (epochs.get(record.id) !== claim.epoch) return []
          // One statement: a message with a lower number may be committed after those that a first one has found.
          const text = `DELETE FROM ${inbox} WHERE id = ? RETURNING n, data`
          const found = await sql.all<{ n: number; data: Uint8Array }>(text, record.id)
          return found.sort((a, b) => a.n - b.n)
        }),
      )
      return rows.flatMap(({ data }) => sealing.open(`inbox:${record.id}`, data) ?? [])
    },
  }
}
