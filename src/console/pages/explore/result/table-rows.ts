import { ExactNumber, stringifyExact } from '../../../exact-json.ts'
import { isMembers } from '../../../form/form-value.ts'

/** A list of objects as a table. */
export interface TableData {
  readonly columns: readonly string[]
  readonly rows: readonly TableRow[]
}

export interface TableRow {
  readonly key: string
  readonly cells: Readonly<Record<string, unknown>>
}

const MOST_COLUMNS = 12
const LEAST_ROWS = 2

/** The table in a value: a list of objects, or the only member of an object that is one. Undefined: there is none. */
export const findTable = (value: unknown): TableData | undefined => {
  if (Array.isArray(value)) return tableOf(value)
  if (!isMembers(value)) return undefined
  const lists = Object.values(value).filter(each => Array.isArray(each) && each.length >= LEAST_ROWS)
  return lists.length === 1 ? tableOf(lists[0] as unknown[]) : undefined
}

const tableOf = (items: readonly unknown[]): TableData | undefined => {
  if (items.length < LEAST_ROWS || !items.every(isMembers)) return undefined
  const counts = new Map<string, number>()
  for (const item of items) for (const name of Object.keys(item)) counts.set(name, (counts.get(name) ?? 0) + 1)
  const columns = [...counts.keys()].slice(0, MOST_COLUMNS)
  if (columns.length === 0) return undefined
  return { columns, rows: items.map((cells, at) => ({ key: String(at), cells })) }
}

export const cellText = (value: unknown): string => {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : stringifyExact(value)
}

const isNumber = (value: unknown): boolean => typeof value === 'number' || value instanceof ExactNumber

export const isNumberColumn = ({ rows }: TableData, column: string): boolean =>
  rows.some(({ cells }) => isNumber(cells[column])) &&
  rows.every(({ cells }) => cells[column] === undefined || cells[column] === null || isNumber(cells[column]))

/** Numbers by value, everything else as text; what is missing comes last. */
export const compareCells = (a: unknown, b: unknown): number => {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  if (isNumber(a) && isNumber(b)) return Number(a) - Number(b)
  return cellText(a).localeCompare(cellText(b), 'en', { numeric: true })
}
