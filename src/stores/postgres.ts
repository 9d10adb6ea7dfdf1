import { once } from 'node:events'
import { Socket } from 'node:net'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { backoffMs, within } from '../std/time.ts'
import { POSTGRES } from './dialect.ts'
import {
  type InsertTarget,
  isSqlFailure,
  type Sql,
  type SqlDatabase,
  SqlError,
  type SqlFailure,
  type SqlValue,
} from './sql.ts'

export interface PostgresOptions {
  readonly url: string
  readonly maxConnections?: number
  /** How long a statement waits for a lock. */
  readonly lockTimeoutMs?: number
  /**
   * How long a statement waits for its answer before the network counts as lost; the server ends it a little earlier. Those of
   * `runLong` wait for ever.
   */
  readonly answerMs?: number
  /** How long a close waits for statements that run. */
  readonly closeMs?: number
}

const MAX_CONNECTIONS = 10
const LOCK_TIMEOUT_MS = 10_000
const ANSWER_MS = 65_000
const STATEMENT_SHARE = 0.9 // of the time for an answer: a slow statement must not count as a lost network
const CLOSE_MS = 5000
const KEEP_ALIVE_MS = 30_000
const CONNECT_MS = 10_000
const IDLE_MS = 30_000
const TRANSACTION_IDLE_MS = 60_000
const SNAPSHOT_IDLE_MS = 10 * 60_000
const MAX_ATTEMPTS = 8
const CONFLICT_BACKOFF = { firstMs: 15, longestMs: 600 }

// By the first characters of the SQLSTATE.
const STATES: readonly (readonly [string, SqlFailure])[] = [
  ['40001', 'conflict'],
  ['40P01', 'conflict'],
  ['55P03', 'busy'],
  ['57014', 'busy'],
  ['53100', 'full'],
  ['53200', 'full'],
  ['53300', 'unreachable'],
  ['57P', 'unreachable'],
  ['25P03', 'unreachable'],
  ['08', 'unreachable'],
  ['28', 'denied'],
  ['3D000', 'denied'],
  ['42501', 'denied'],
  ['23', 'constraint'],
  ['54', 'limit'],
]

const SOCKET_CODE = /^E(?:CONN|HOST|NET|PIPE|TIMEDOUT|NOENT|ACCES|AI_|NOTFOUND)/
// Errors of the client library that have no code.
const LOST = /connection terminated|timeout exceeded when trying to connect|not queryable|connection ended/i

const kindOf = (code: string, message: string): SqlFailure | undefined => {
  const known = STATES.find(([start]) => code.startsWith(start))?.[1]
  if (known) return known
  if (SOCKET_CODE.test(code) || LOST.test(message)) return 'unreachable'
  return /^[0-9A-Z]{5}$/.test(code) ? 'other' : undefined
}

const classified = (error: unknown): unknown => {
  if (!(error instanceof Error) || error instanceof SqlError) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const kind = kindOf(code, error.message)
  // When every address of a host fails, the message is empty.
  const message = error.message || (error instanceof AggregateError ? String(error.errors[0]) : code)
  return kind ? new SqlError(kind, message, { state: code || undefined, cause: error }) : error
}

const guarded = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    throw classified(error)
  }
}

/** Rewrites `?` and `?1` to `$1`, once for each text. */
const createNumbering = (): ((sql: string) => string) => {
  const numbered = new Map<string, string>() // as many as there are statements in the program
  return sql => {
    const known = numbered.get(sql)
    if (known !== undefined) return known
    let next = 0
    const written = sql.replace(/\?(\d*)/g, (_, number: string) => `$${number || ++next}`)
    numbered.set(sql, written)
    return written
  }
}

const boundValue = (value: SqlValue): unknown => {
  // Texts in PostgreSQL cannot contain the character zero.
  if (typeof value === 'string') return value.includes('\0') ? POSTGRES.storedText(value) : value
  if (Array.isArray(value)) return value.map(boundValue)
  return value instanceof Uint8Array && !Buffer.isBuffer(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : value
}

const INT8 = 20
// Row ids and times fit a number; the library returns them as text.
const TYPES = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary'
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

const ARRAYS = { integer: 'bigint[]', text: 'text[]' } as const

const insertStatement = ({ table, columns, ignoresConflicts, returnsIds }: InsertTarget): string => {
  const lists = Object.values(columns).map(type => `?::${ARRAYS[type]}`)
  const sql = `INSERT INTO ${table} (${Object.keys(columns).join(', ')}) SELECT * FROM unnest(${lists.join(', ')})`
  return `${sql}${ignoresConflicts ? ' ON CONFLICT DO NOTHING' : ''}${returnsIds ? ' RETURNING id' : ''}`
}

/** Statements by way of `query`, which runs one of them. */
const createSql = (query: (sql: string, values?: unknown[]) => Promise<pg.QueryResult>): Sql => {
  const run = (sql: string, values: readonly SqlValue[]) => query(sql, values.map(boundValue))
  return {
    dialect: POSTGRES,
    all: async <Row>(sql: string, ...values: readonly SqlValue[]) => (await run(sql, values)).rows as Row[],
    get: async <Row>(sql: string, ...values: readonly SqlValue[]) =>
      (await run(sql, values)).rows[0] as Row | undefined,
    run: async (sql, ...values) => (await run(sql, values)).rowCount ?? 0,
    insert: async (sql, ...values) => (await run(`${sql} RETURNING id`, values)).rows[0]?.id as number | undefined,
    insertAll: async (into, rows) => {
      if (rows.length === 0) return []
      const sql = insertStatement(into)
      const values = Object.keys(into.columns).map((_, column) => rows.map(row => row[column] ?? null))
      return (await run(sql, values)).rows.map(row => row.id as number)
    },
    runEach: async (sql, rows) => {
      for (const row of rows) await run(sql, row)
    },
    exec: async sql => void (await query(sql)),
  }
}

/** How long the server lets a statement run, and wait for a lock; 0: for ever. */
interface StatementLimits {
  readonly statementMs: number
  readonly lockMs: number
}

const NO_LIMITS: StatementLimits = { statementMs: 0, lockMs: 0 }

const beginning = (mode: string, { statementMs, lockMs }: StatementLimits, idleMs: number, begin = ''): string =>
  [
    `BEGIN ISOLATION LEVEL ${mode}`,
    `SET LOCAL lock_timeout = ${lockMs}`,
    `SET LOCAL statement_timeout = ${statementMs}`,
    // A process that hangs within a transaction must not lock out the others.
    `SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`,
    begin,
  ].join('; ')

/**
 * Limits the statements of a connection that are outside of transactions. Does nothing on one that a pooler shares: other
 * clients would get the limits too, and it may reject them at the start of a connection. There its own settings apply.
 */
const limitSession = ({ statementMs, lockMs }: StatementLimits, processId: number): string =>
  `SELECT set_config('statement_timeout', '${statementMs}', false), set_config('lock_timeout', '${lockMs}', false)
WHERE pg_backend_pid() = ${processId}`

/** As the other end has named itself: a pooler has ids of its own. */
const processIdOf = (client: pg.PoolClient): number =>
  'processID' in client && typeof client.processID === 'number' ? client.processID : 0

const commit = async (query: (sql: string) => Promise<pg.QueryResult>): Promise<void> => {
  try {
    const { command } = await query('COMMIT')
    if (command !== 'COMMIT') throw new SqlError('other', 'a statement of the transaction had failed')
  } catch (error) {
    const failure = classified(error)
    if (!isSqlFailure(failure, 'unreachable')) throw failure
    throw new SqlError('unsure', failure.message, { state: failure.state, cause: error })
  }
}

const locationOf = (url: string): string => {
  try {
    const { host, pathname, searchParams } = new URL(url)
    return `${host || searchParams.get('host') || 'localhost'}${pathname}`
  } catch {
    return 'the database'
  }
}

/** Opens a pool of connections. It connects when it is first used. */
export const openPostgres = (options: PostgresOptions): SqlDatabase => {
  const { url, maxConnections = MAX_CONNECTIONS, lockTimeoutMs = LOCK_TIMEOUT_MS } = options
  const { answerMs = ANSWER_MS, closeMs = CLOSE_MS } = options
  const limits: StatementLimits = { statementMs: Math.floor(answerMs * STATEMENT_SHARE), lockMs: lockTimeoutMs }
  const limitsOf = new WeakMap<pg.PoolClient, StatementLimits>()
  const sockets = new Set<Socket>()
  const openSocket = (): Socket => {
    const socket = new Socket()
    sockets.add(socket)
    return socket.on('close', () => sockets.delete(socket))
  }
  const cut = async (): Promise<void> => {
    await Promise.all([...sockets].map(socket => once(socket.destroy(), 'close')))
    await setImmediate() // until the pool has noticed, too
  }
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_MS,
    allowExitOnIdle: true,
    application_name: 'dragoman',
    types: TYPES,
    stream: openSocket,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  })
  pool.on('error', () => {}) // An idle connection was lost; the pool replaces it.
  pool.on('connect', client => client.on('error', () => {})) // One in use was lost; its next statement fails.
  const numbered = createNumbering()
  let closing: Promise<void> | undefined

  const connect = (): Promise<pg.PoolClient> => guarded(() => pool.connect())
  type Query = (client: pg.PoolClient, sql: string, values?: unknown[]) => Promise<pg.QueryResult>
  const query: Query = (client, sql, values) =>
    guarded(() => (values ? client.query(numbered(sql), values) : client.query(sql)))
  // The network is gone without a word, or the server hangs: the other connections are no better, and none would ever end.
  const queryInTime: Query = (...args) =>
    within(answerMs, query(...args), async () => {
      await cut()
      throw new SqlError('unreachable', `it did not answer for ${answerMs / 1000} s`)
    })
  const sqlOn = (client: pg.PoolClient): Sql => createSql((sql, values) => queryInTime(client, sql, values))
  const attempt = async <Result>(work: (sql: Sql) => Promise<Result>, begin: string): Promise<Result> => {
    const client = await connect()
    const sql = sqlOn(client)
    let isBroken = false
    try {
      await sql.exec(begin)
      const result = await work(sql)
      await commit(text => queryInTime(client, text))
      return result
    } catch (error) {
      isBroken = isSqlFailure(error, 'unreachable', 'unsure')
      if (!isBroken) await sql.exec('ROLLBACK').catch(() => (isBroken = true))
      throw error
    } finally {
      client.release(isBroken)
    }
  }
  const setLimits = async (client: pg.PoolClient, next: StatementLimits): Promise<void> => {
    if ((limitsOf.get(client) ?? NO_LIMITS) === next) return
    await queryInTime(client, limitSession(next, processIdOf(client)))
    limitsOf.set(client, next)
  }
  const outsideBy = (run: Query, limited: StatementLimits): Sql =>
    createSql(async (sql, values) => {
      const client = await connect()
      let isBroken = false
      try {
        await setLimits(client, limited)
        return await run(client, sql, values)
      } catch (error) {
        isBroken = isSqlFailure(error, 'unreachable')
        throw error
      } finally {
        client.release(isBroken)
      }
    })
  const [outside, long] = [outsideBy(queryInTime, limits), outsideBy(query, NO_LIMITS)]
  return {
    ...outside,
    location: locationOf(url),
    driver: 'pg',
    transaction: async (work, given = {}) => {
      const mode = given.readOnly ? 'READ COMMITTED READ ONLY' : 'READ COMMITTED'
      const begin = beginning(mode, limits, TRANSACTION_IDLE_MS, given.begin)
      for (let failures = 0; ; failures++) {
        try {
          return await attempt(work, begin)
        } catch (error) {
          if (failures + 1 >= MAX_ATTEMPTS || !isSqlFailure(error, 'conflict', 'unreachable')) throw error
        }
        await delay(backoffMs(CONFLICT_BACKOFF, failures))
      }
    },
    snapshot: async begin => {
      const client = await connect()
      const sql = sqlOn(client)
      let isOpen = true
      const close = async (): Promise<void> => {
        if (!isOpen) return
        isOpen = false
        const isBroken = await sql.exec('ROLLBACK').then(
          () => false,
          () => true,
        )
        client.release(isBroken)
      }
      try {
        await sql.exec(beginning('REPEATABLE READ READ ONLY', limits, SNAPSHOT_IDLE_MS, begin))
        return { sql, close }
      } catch (error) {
        await close()
        throw error
      }
    },
    runLong: async (sql, ...values) => void (values.length > 0 ? await long.run(sql, ...values) : await long.exec(sql)),
    close: () => {
      closing ??= within(closeMs, pool.end(), cut)
      return closing
    },
  }
}

/** A text as a literal of a statement. */
export const literal = (text: string): string => pg.escapeLiteral(text)

/** The name of a table, schema or role as part of a statement. */
export const identifier = (name: string): string => pg.escapeIdentifier(name)
