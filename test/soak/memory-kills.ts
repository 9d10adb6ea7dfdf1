import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { openSqliteStore } from '../../src/servers/memory/open-stores.ts'
import { openSqlite } from '../../src/stores/sqlite.ts'

const ADDER = new URL('./memory-adder.ts', import.meta.url).pathname

/** Starts a process that adds episodes, kills it once it has acknowledged so many, and tells the last it acknowledged. */
export const addAndKill = async (path: string, from: number, count: number, killAfter: number): Promise<number> => {
  const child = spawn(process.execPath, ['--import', 'tsx', ADDER, path, String(from), String(count)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'exit')
  let last = from - 1
  for await (const line of createInterface({ input: child.stdout })) {
    if (line !== 'done') last = Number(line)
    if (last - from + 1 >= killAfter) child.kill('SIGKILL')
  }
  await gone
  return last
}

/** What is wrong with a memory that should hold the episodes 0 to `last`, each whole. */
export const faultsOf = async (path: string, last: number): Promise<string[]> => {
  const faults: string[] = []
  const store = await openSqliteStore({ path })
  const stored = await store.episodes({ groups: ['main'], limit: 1_000_000, order: 'arrival' })
  const names = new Set(stored.map(episode => episode.name))
  for (let at = 0; at <= last; at++)
    if (!names.has(`episode ${at}`)) faults.push(`episode ${at} was acknowledged and is lost`)
  const { docs, jobs } = await store.stats()
  if (docs !== stored.length) faults.push(`${docs} passages for ${stored.length} episodes`)
  if (jobs.waiting !== stored.length) faults.push(`${jobs.waiting} jobs for ${stored.length} episodes`)
  await store.close()
  const db = await openSqlite(path)
  const check = (await db.get<{ integrity_check: string }>('PRAGMA integrity_check'))?.integrity_check
  if (check !== 'ok') faults.push(`integrity: ${check}`)
  await db.exec("INSERT INTO doc_fts (doc_fts, rank) VALUES ('integrity-check', 1)")
  await db.close()
  return faults
}
