import type { ChangingList, ListChanges } from '../protocol/notifications.ts'
import { SingleFlight } from '../std/single-flight.ts'
import { sleep } from '../std/time.ts'
import type { Shared } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'

/** How often each list of each server has changed: by server and list. */
type ChangeCounts = ReadonlyMap<string, number>

const DOCUMENT = 'list-changes'
const ATTEMPTS = 20
const INTERVAL_MS = 200 // between two writes, in which changes are collected

const keyOf = (server: string, list: ChangingList): string => `${list} ${server}`

/**
 * Tells the other replicas which lists have changed, and hears it from them: a client that was notified at one replica may
 * ask for the list at another, which has cached it.
 */
export const createSharedLists = (shared: Shared, log: Log): ListChanges & { close(): void } => {
  const listeners = new Set<Parameters<ListChanges['onChanged']>[0]>()
  const work = new SingleFlight()
  const unsent = new Set<string>()
  let known: ChangeCounts | undefined // undefined: not read yet
  let hasNews = false
  let isClosed = false

  const take = (next: ChangeCounts): void => {
    const before = known
    known = next
    if (!before) return // lists are cached after the start
    for (const [key, count] of next) {
      if (count === before.get(key)) continue
      const at = key.indexOf(' ')
      for (const listener of [...listeners]) listener(key.slice(at + 1), key.slice(0, at) as ChangingList)
    }
  }

  const read = async (): Promise<{ readonly version: number; readonly counts: ChangeCounts }> => {
    const found = await shared.document(DOCUMENT)
    const counts = new Map(Object.entries(found ? (JSON.parse(found.body.toString()) as Record<string, number>) : {}))
    take(counts)
    return { version: found?.version ?? 0, counts }
  }

  const write = async (keys: ReadonlySet<string>): Promise<void> => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { version, counts } = await read()
      const next = new Map([...counts, ...[...keys].map(key => [key, (counts.get(key) ?? 0) + 1] as const)])
      const body = Buffer.from(JSON.stringify(Object.fromEntries(next)))
      if (!(await shared.writeDocument(DOCUMENT, body, version))) continue
      known = next // its own changes are no news
      return
    }
  }

  const run = async (): Promise<void> => {
    while ((hasNews || unsent.size > 0) && !isClosed) {
      hasNews = false
      const keys = new Set(unsent)
      unsent.clear()
      try {
        if (keys.size === 0) await read()
        else await write(keys)
      } catch (error) {
        // The store is away: the other replicas serve their lists until those expire.
        log.debug({ err: error }, 'changes of lists not shared with other replicas')
      }
      if (keys.size > 0) await sleep(INTERVAL_MS)
    }
  }

  const start = (): void => void work.run(run).then(() => (hasNews || unsent.size > 0) && !isClosed && start())

  const stopListening = shared.on(DOCUMENT, () => {
    hasNews = true
    start()
  })
  hasNews = true
  start()
  return {
    announce: (server, list) => {
      unsent.add(keyOf(server, list))
      start()
    },
    onChanged: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: () => {
      isClosed = true
      stopListening()
    },
  }
}
