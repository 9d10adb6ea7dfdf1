import type { Context } from './context.ts'

/** Changes what is kept under a key; the caller holds the transaction, so nobody's change is lost. */
export const amend = ({ db }: Context, key: string, change: (known: unknown) => unknown): unknown => {
  const row = db.get<{ value: string }>('SELECT value FROM meta WHERE key = ?', key)
  const known: unknown = row && JSON.parse(row.value)
  const value = change(known)
  if (value === known || value === undefined) return known
  db.run(
    'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
    key,
    JSON.stringify(value),
  )
  return value
}
