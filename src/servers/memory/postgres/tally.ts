import type { Sql } from '../../../stores/postgres.ts'
import { stemsIn } from './index-row.ts'
import type { IndexKind } from './schema.ts'

/** An index row as it comes or goes. */
interface Row {
  readonly tsv: string
  readonly len: number
}

/** Changes of the counts of an index, gathered during a transaction. */
export interface Tally {
  add(kind: IndexKind, row: Row): void
  remove(kind: IndexKind, row: Row): void
  /** How many rows came. */
  added(): number
  /** Writes them, last of all: rows that everybody wants are held for a moment only. */
  flush(db: Sql): Promise<void>
}

interface Change {
  readonly kind: IndexKind
  readonly stem: string
  n: number
  tokens: number
}

const order = (a: Change, b: Change): number =>
  Buffer.compare(Buffer.from(`${a.kind}\0${a.stem}`), Buffer.from(`${b.kind}\0${b.stem}`))

const WRITE = `INSERT INTO term AS t (kind, stem, n, tokens)
  SELECT * FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[])
  ON CONFLICT (tenant, kind, stem) DO UPDATE SET n = t.n + excluded.n, tokens = t.tokens + excluded.tokens`

/** A tally that has counted nothing yet. */
export const createTally = (): Tally => {
  const changes = new Map<string, Change>()
  let added = 0
  const count = (kind: IndexKind, stem: string, n: number, tokens = 0): void => {
    const key = `${kind}\0${stem}`
    const known = changes.get(key) ?? { kind, stem, n: 0, tokens: 0 }
    known.n += n
    known.tokens += tokens
    changes.set(key, known)
  }
  const put = (kind: IndexKind, { tsv, len }: Row, sign: 1 | -1): void => {
    count(kind, '', sign, sign * len)
    for (const stem of stemsIn(tsv)) count(kind, stem, sign)
  }
  return {
    add: (kind, row) => {
      added++
      put(kind, row, 1)
    },
    remove: (kind, row) => put(kind, row, -1),
    added: () => added,
    flush: async db => {
      const list = [...changes.values()].filter(({ n, tokens }) => n !== 0 || tokens !== 0).toSorted(order)
      changes.clear()
      if (list.length === 0) return
      await db.run(
        WRITE,
        list.map(({ kind }) => kind),
        list.map(({ stem }) => stem),
        list.map(({ n }) => n),
        list.map(({ tokens }) => tokens),
      )
      const fewer = list.filter(({ n }) => n < 0)
      if (fewer.length > 0)
        await db.run(
          'DELETE FROM term WHERE n <= 0 AND stem = ANY (?)',
          fewer.map(({ stem }) => stem),
        )
    },
  }
}
