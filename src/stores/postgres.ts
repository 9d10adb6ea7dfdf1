import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { explained, isFailure, PostgresError } from './postgres-failures.ts'

/** A value PostgreSQL takes. */
export type PostgresValue = string | number | boolean | null | Uint8Array | readonly (string | number | null)[]

/** Statements within one transaction; values stand for `?` in their order, or for `?1`, `?2` by number. */
export interface Sql {
  all<Row = Readonly<Record<string, string | number | null | Uint8Array>>>(
    sql: string,
    ...values: readonly PostgresValue[]
  ): Promise<Row[]>
  get<Row = Readonly<Record<string, string | number | null | Uint8Array>>>(
    sql: string,
    ...values: readonly PostgresValue[]
  ): Promise<Row | undefined>
  /** Returns how many rows were touched. */
  run(sql: string, ...values: readonly PostgresValue[]): Promise<number>
  /** Several statements at once, without values. */
  exec(sql: string): Promise<void>
}

export interface TransactionOptions {
  readonly readOnly?: boolean
  /** Statements that belong to the beginning, like SET LOCAL; they cost no way of their own. */
  readonly begin?: string
}

/** An open view of one moment. */
export interface Snapshot {
  readonly sql: Sql
  close(): Promise<void>
}

/** A pool of connections to one database. */
export interface Postgres {
  /** Where it is, without the password. */
  readonly place: string
  /** Runs `work` as one transaction that is durable when this resolves. It may run again after a conflict or a lost connection, so it must not do anything else. */
  transaction<Result>(work: (sql: Sql) => Promise<Result>, options?: TransactionOptions): Promise<Result>
  /** An unchanging view that stays open until it is closed, for reading at a reader's pace. */
  snapshot(begin?: string): Promise<Snapshot>
  /** One statement outside any transaction. */
  alone(sql: string): Promise<void>
  close(): Promise<void>
}

export interface PostgresOptions {
  readonly url: string
  readonly mostConnections?: number
  /** How long a statement may wait for a lock, in ms. */
  readonly patience?: number
}

const MOST_CONNECTIONS = 10
const PATIENCE = 10_000
const STATEMENT_MS = 60_000
const CONNECT_MS = 10_000
const IDLE_MS = 30_000
const SNAPSHOT_IDLE_MS = 10 * 60_000
const MOST_ATTEMPTS = 8
const LONGEST_PAUSE = 400
const INT8 = 20
const PLACEHOLDER = /\?(\d*)/g

/** Texts in PostgreSQL cannot hold the character zero; its picture stands in for it. */
const ZERO = '\u2400'

const numbered = new Map<string, string>()

/** The same statement with `$1` for `?`. The number of different statements is that of those written in the program. */
const withNumbers = (sql: string): string => {
  const known = numbered.get(sql)
  if (known !== undefined) return known
  let next = 0
  const written = sql.replace(PLACEHOLDER, (_, number: string) => `$${number || ++next}`)
  numbered.set(sql, written)
  return written
}

const prepared = (value: PostgresValue): unknown => {
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', ZERO) : value
  if (Array.isArray(value)) return value.map(prepared)
  return value instanceof Uint8Array && !Buffer.isBuffer(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : value
}

// Row ids and times fit a number; the library gives them as text to be safe.
const TYPES = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary'
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

const sqlOn = (client: pg.PoolClient): Sql => {
  const query = async (sql: string, values: readonly PostgresValue[]): Promise<pg.QueryResult> => {
    try {
      return await client.query(withNumbers(sql), values.map(prepared))
    } catch (error) {
      throw explained(error)
    }
  }
  return {
    all: async <Row>(sql: string, ...values: readonly PostgresValue[]) => (await query(sql, values)).rows as Row[],
    get: async <Row>(sql: string, ...values: readonly PostgresValue[]) =>
      (await query(sql, values)).rows[0] as Row | undefined,
    run: async (sql, ...values) => (await query(sql, values)).rowCount ?? 0,
    exec: async sql => {
      try {
        await client.query(sql)
      } catch (error) {
        throw explained(error)
      }
    },
  }
}

const beginning = (mode: string, patience: number, idle: number, begin = ''): string =>
  [
    `BEGIN ISOLATION LEVEL ${mode}`,
    `SET LOCAL lock_timeout = ${patience}`,
    `SET LOCAL statement_timeout = ${STATEMENT_MS}`,
    // A process that hangs in the middle must not keep the others out.
    `SET LOCAL idle_in_transaction_session_timeout = ${idle}`,
    begin,
  ].join('; ')

const commit = async (client: pg.PoolClient): Promise<void> => {
  try {
    const { command } = await client.query('COMMIT')
    if (command !== 'COMMIT') throw new PostgresError('other', 'the transaction had failed before its end')
  } catch (error) {
    const failure = explained(error)
    if (!isFailure(failure, 'unreachable')) throw failure
    throw new PostgresError('unsure', failure.message, failure.state, { cause: error })
  }
}

const placeOf = (url: string): string => {
  try {
    const { host, pathname, searchParams } = new URL(url)
    return `${host || searchParams.get('host') || 'localhost'}${pathname}`
  } catch {
    return 'the database'
  }
}

/** Opens a pool. Nothing is connected before it is used. */
export const openPostgres = (options: PostgresOptions): Postgres => {
  const { url, mostConnections = MOST_CONNECTIONS, patience = PATIENCE } = options
  const pool = new pg.Pool({
    connectionString: url,
    max: mostConnections,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_MS,
    allowExitOnIdle: true,
    application_name: 'dragoman',
    types: TYPES,
  })
  pool.on('error', () => {}) // An idle connection was lost; the pool drops it and makes another when one is wanted.
  pool.on('connect', client => client.on('error', () => {})) // One in use was lost; its next statement says so.
  let closing: Promise<void> | undefined

  const connect = async (): Promise<pg.PoolClient> => {
    try {
      return await pool.connect()
    } catch (error) {
      throw explained(error)
    }
  }
  const attempt = async <Result>(work: (sql: Sql) => Promise<Result>, begin: string): Promise<Result> => {
    const client = await connect()
    let isBroken = false
    try {
      const sql = sqlOn(client)
      await sql.exec(begin)
      const result = await work(sql)
      await commit(client)
      return result
    } catch (error) {
      isBroken = isFailure(error, 'unreachable', 'unsure')
      if (!isBroken) await client.query('ROLLBACK').catch(() => (isBroken = true))
      throw error
    } finally {
      client.release(isBroken)
    }
  }
  return {
    place: placeOf(url),
    transaction: async (work, given = {}) => {
      const mode = given.readOnly ? 'READ COMMITTED READ ONLY' : 'READ COMMITTED'
      const begin = beginning(mode, patience, STATEMENT_MS, given.begin)
      for (let tries = 1; ; tries++) {
        try {
          return await attempt(work, begin)
        } catch (error) {
          if (tries >= MOST_ATTEMPTS || !isFailure(error, 'conflict', 'unreachable')) throw error
        }
        // Uneven, so that two who met do not meet again.
        await delay(Math.min(LONGEST_PAUSE, 5 * 2 ** tries) * (0.5 + Math.random()))
      }
    },
    snapshot: async begin => {
      const client = await connect()
      let isOpen = true
      const close = async (): Promise<void> => {
        if (!isOpen) return
        isOpen = false
        const isBroken = await client.query('ROLLBACK').then(
          () => false,
          () => true,
        )
        client.release(isBroken)
      }
      try {
        const sql = sqlOn(client)
        await sql.exec(beginning('REPEATABLE READ READ ONLY', patience, SNAPSHOT_IDLE_MS, begin))
        return { sql, close }
      } catch (error) {
        await close()
        throw error
      }
    },
    alone: async sql => {
      const client = await connect()
      let isBroken = false
      try {
        await sqlOn(client).exec(sql)
      } catch (error) {
        isBroken = isFailure(error, 'unreachable')
        throw error
      } finally {
        client.release(isBroken)
      }
    },
    close: () => {
      closing ??= pool.end()
      return closing
    },
  }
}

/** A text as a literal in a statement. */
export const literal = (text: string): string => pg.escapeLiteral(text)

/** A name of a table, schema or role in a statement. */
export const identifier = (name: string): string => pg.escapeIdentifier(name)
