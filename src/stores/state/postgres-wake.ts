import { Socket } from 'node:net'
import pg from 'pg'
import { backoffMs, within } from '../../std/time.ts'
import type { SqlDatabase } from '../sql.ts'
import type { Wake } from './wake.ts'

const CHANNEL = 'dragoman_state'
const BACKOFF = { firstMs: 500, longestMs: 30_000 }
const CONNECT_MS = 5000
const PROBE_MS = 30_000 // a connection that only listens does not notice that the network has lost it
const ANSWER_MS = 5000
const CLOSE_MS = 1000

/**
 * Notifications of PostgreSQL, on a connection of its own. Where that cannot listen, for example through a pooler in
 * transaction mode, other replicas learn by polling.
 */
export const listenOnPostgres = (url: string, database: SqlDatabase, probeMs = PROBE_MS): Wake => {
  const source = Math.random().toString(36).slice(2) // a replica has called its own listeners already
  let listener: (topic: string) => void = () => {}
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let isClosed = false
  const sockets = new WeakMap<pg.Client, Socket>()

  const retry = (failed: pg.Client): void => {
    if (isClosed || failed !== client) return
    client = undefined
    void end(failed)
    clearTimeout(timer)
    timer = setTimeout(connect, backoffMs(BACKOFF, failures++)).unref()
  }
  /** Resolves also if the server does not confirm it. */
  const end = async (ended: pg.Client): Promise<void> => {
    await within(CLOSE_MS, ended.end(), () => {}).catch(() => {})
    sockets.get(ended)?.destroy()
  }
  const probe = (own: pg.Client): void => {
    timer = setTimeout(() => {
      const silent = (): never => {
        throw new Error('no answer to a probe')
      }
      within(Math.min(ANSWER_MS, probeMs), own.query('SELECT 1'), silent).then(
        () => own === client && !isClosed && probe(own),
        () => retry(own),
      )
    }, probeMs).unref()
  }
  const connect = (): void => {
    const socket = new Socket()
    const own = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_MS,
      application_name: 'dragoman',
      stream: () => socket,
      keepAlive: true,
      keepAliveInitialDelayMillis: PROBE_MS,
    })
    client = own
    sockets.set(own, socket)
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
          if (own === client) probe(own)
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
      if (client) await end(client)
    },
  }
}
