import type { Context } from './context.ts'

/** Changes a value that is kept under a key, as JSON; whoever changes it at the same time waits. */
export const amend = async ({ db }: Context, key: string, change: (known: unknown) => unknown): Promise<unknown> => {
  // A row to wait for, also when there was none.
  await db.run("INSERT INTO meta (key, value) VALUES (?, '') ON CONFLICT DO NOTHING", key)
  const row = await db.get<{ value: string }>('SELECT value FROM meta WHERE key = ? FOR UPDATE', key)
  const known: unknown = row?.value ? JSON.parse(row.value) : undefined
  const value = change(known)
  const isKept = value === known || value === undefined
  if (!isKept) await db.run('UPDATE meta SET value = ? WHERE key = ?', JSON.stringify(value), key)
  if (isKept && known === undefined) await db.run('DELETE FROM meta WHERE key = ?', key)
  return isKept ? known : value
}
