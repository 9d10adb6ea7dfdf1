import pg from 'pg'
import { backoffMs } from '../../std/time.ts'
import type { SqlDatabase } from '../sql.ts'
import type { Wake } from './wake.ts'

const CHANNEL = 'dragoman_state'
const BACKOFF = { firstMs: 500, longestMs: 30_000 }
const CONNECT_MS = 5000

/**
 * Notifications of PostgreSQL, on a connection of its own. Where that cannot listen, for example through a pooler in
 * transaction mode, other replicas learn by polling.
 */
export const listenOnPostgres = (url: string, database: SqlDatabase): Wake => {
  const source = Math.random().toString(36).slice(2) // a replica has called its own listeners already
  let listener: (topic: string) => void = () => {}
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let isClosed = false

  const retry = (failed: pg.Client): void => {
    if (isClosed || failed !== client) return
    client = undefined
    failed.end().catch(() => {})
    timer = setTimeout(connect, backoffMs(BACKOFF, failures++)).unref()
  }
  const connect = (): void => {
    const own = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_MS,
      application_name: 'dragoman',
    })
    client = own
    own.on('error', () => retry(own))
    own.on('end', () => retry(own))
    own.on('notification', ({ payload = '' }) => {
      const [from, topic = ''] = payload.split(' ')
      if (from !== source) listener(topic)
    })
    own
      .connect()
      .then(() => own.query(`LISTEN ${CHANNEL}`))
      .then(
        () => {
          failures = 0
        },
        () => retry(own),
      )
  }
  connect()
  return {
    send: async topics => {
      const payloads = topics.map(topic => `${source} ${topic}`)
      const sql = `SELECT pg_notify('${CHANNEL}', topic) FROM unnest(?::text[]) AS topic`
      await database.run(sql, payloads).catch(() => {}) // polling makes up for what is lost
    },
    onWake: next => {
      listener = next
    },
    close: async () => {
      isClosed = true
      clearTimeout(timer)
      await client?.end().catch(() => {})
    },
  }
}
