import { type SqlDatabase, SqlError } from '../../src/stores/sql.ts'

/** A database that can be taken away: statements fail, do not end, or are executed and not answered. */
export const breakable = (database: SqlDatabase) => {
  const fault: { kind: 'none' | 'fails' | 'hangs' | 'unanswered' } = { kind: 'none' }
  const guard =
    <Args extends unknown[], Result>(run: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      if (fault.kind === 'fails') throw new SqlError('unreachable', 'connection refused')
      if (fault.kind === 'hangs') return new Promise(() => {})
      const result = await run(...args)
      if (fault.kind === 'unanswered') throw new SqlError('unsure', 'connection lost')
      return result
    }
  const { run, get, all, exec, transaction } = database
  const broken = { ...database, run: guard(run), get: guard(get), all: guard(all), exec: guard(exec) } as SqlDatabase
  broken.transaction = guard(transaction) as SqlDatabase['transaction']
  return { database: broken, fault }
}
