import type { MemoryScope } from '../../../protocol/memory-operations.ts'
import type { MemoryStore, MemoryStores } from '../store.ts'
import { scopeGroups } from './browse.ts'

const CHUNK_CHARACTERS = 64 * 1024 // per message between the threads

/** The lines of an export in large chunks. The tenant's store stays open until the reader has all of them, or leaves. */
export const exportChunks = async function* (stores: MemoryStores, tenant: string, scope: MemoryScope) {
  const encoder = new TextEncoder()
  let finish = (): void => {}
  const ended = new Promise<void>(resolve => {
    finish = resolve
  })
  const opened = new Promise<MemoryStore>((resolve, reject) => {
    stores
      .with(tenant, async store => {
        resolve(store)
        await ended
      })
      .catch(reject)
  })
  try {
    let chunk = ''
    for await (const line of (await opened).exportLines(scopeGroups(scope))) {
      chunk += `${line}\n`
      if (chunk.length < CHUNK_CHARACTERS) continue
      yield encoder.encode(chunk)
      chunk = ''
    }
    if (chunk !== '') yield encoder.encode(chunk)
  } finally {
    finish()
  }
}
