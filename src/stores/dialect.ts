/** What differs in the SQL of the engines, for statements that are otherwise the same. */
export interface Dialect {
  /** Whether writers lock single rows; otherwise there is one writer at a time. */
  readonly locksRows: boolean
  /** Appended to a SELECT whose rows other writers must not change before the transaction ends. */
  readonly forUpdate: string
  /** The same for the rows of one table of a join, without those that are locked already. */
  skipLocked(alias: string): string
  /** The condition that a column's value is in a list parameter. */
  inList(column: string, parameter?: string): string
  /** A column in a condition for which no index is to be used, because another condition has a better one. */
  withoutIndex(column: string): string
  /** The condition that a text contains another, case-sensitively. */
  contains(text: string, part: string): string
  /** An aggregate: a JSON array of the values, as text. */
  jsonArrayOf(value: string, orderBy: string): string
  /** The function that builds a JSON array of its arguments. */
  readonly jsonArray: string
  /** A text as it is read again: neither a zero byte nor half of a surrogate pair can be stored. */
  storedText(text: string): string
  readonly types: {
    readonly integer: string // 64 bits
    readonly real: string
    readonly bytes: string
    /** Text that is compared byte by byte, whatever the language of the database. */
    readonly key: string
  }
}

/** A statement that is built once for each dialect. */
export const perDialect = (build: (dialect: Dialect) => string): ((sql: { readonly dialect: Dialect }) => string) => {
  const built = new Map<Dialect, string>()
  return ({ dialect }) => {
    const known = built.get(dialect) ?? build(dialect)
    built.set(dialect, known)
    return known
  }
}

const HALF_PAIRS = /\p{Surrogate}/gu

export const SQLITE: Dialect = {
  locksRows: false,
  forUpdate: '',
  skipLocked: () => '',
  // The driver binds a list as a JSON array.
  inList: (column, parameter = '?') => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  withoutIndex: column => `+${column}`,
  contains: (text, part) => `instr(${text}, ${part}) > 0`,
  jsonArrayOf: (value, orderBy) => `json_group_array(${value} ORDER BY ${orderBy})`,
  jsonArray: 'json_array',
  storedText: text => text.replaceAll('\0', '\uFFFD').replace(HALF_PAIRS, '\uFFFD'),
  types: { integer: 'INTEGER', real: 'REAL', bytes: 'BLOB', key: 'TEXT' },
}

export const POSTGRES: Dialect = {
  locksRows: true,
  forUpdate: ' FOR UPDATE',
  skipLocked: alias => ` FOR UPDATE OF ${alias} SKIP LOCKED`,
  inList: (column, parameter = '?') => `${column} = ANY (${parameter})`,
  withoutIndex: column => column,
  contains: (text, part) => `position(${part} IN ${text}) > 0`,
  jsonArrayOf: (value, orderBy) => `coalesce(json_agg(${value} ORDER BY ${orderBy}), '[]')::text`,
  jsonArray: 'json_build_array',
  storedText: text => text.replaceAll('\0', '\u2400').replace(HALF_PAIRS, '\uFFFD'),
  types: { integer: 'BIGINT', real: 'DOUBLE PRECISION', bytes: 'BYTEA', key: 'TEXT COLLATE "C"' },
}
