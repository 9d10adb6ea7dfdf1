import type { MemoryStore } from '../../../src/servers/memory/store.ts'
import { START, tell } from './sqlite-store.ts'

const WRITINGS: readonly ((name: string) => string)[] = [
  name => name,
  name => name.toUpperCase(),
  name => ` ${name} `,
  name => `"${name}"`,
]

/** Adds episodes to many groups at once; the same few names recur in every group and in every writing. */
export const interleave = async (
  store: MemoryStore,
  { adds, groups }: { readonly adds: number; readonly groups: number },
): Promise<void> => {
  const one = async (at: number): Promise<void> => {
    const group = `group-${at % groups}`
    const name = (WRITINGS[at % WRITINGS.length] ?? String)(`Person ${(at * 7 + Math.floor(at / groups)) % 40}`)
    await tell(store, `Zoe: number ${at} in ${group} is about ${name.trim().replaceAll('"', '')}.`, {
      group,
      name: `episode ${at}`,
      validAt: START + at,
      entities: [{ name }, { name: 'Shared Name' }],
    })
  }
  const WORKERS = 50
  const workers = Array.from({ length: WORKERS }, async (_, worker) => {
    for (let at = worker; at < adds; at += WORKERS) await one(at)
  })
  await Promise.all(workers)
}
