import type { RecordingSummary } from '../protocol/recording.ts'

/** What an export needs to know of an exchange before it reads its messages. */
export type ExportedExchange = Pick<RecordingSummary, 'id' | 'order' | 'continues' | 'continuedBy'>

/** Without the messages: an export has many exchanges. */
export const toExported = ({ id, order, continues, continuedBy }: ExportedExchange): ExportedExchange => ({
  id,
  order,
  continues,
  continuedBy,
})

/** Undefined: the exchange was forgotten. */
type FindExchange = (id: string) => Promise<ExportedExchange | undefined>

/**
 * The ids of these exchanges and of all that belong to the same conversations, oldest first: a request with answers cannot
 * be played back without the request that was asked.
 */
export const selectConversations = async (
  chosen: readonly ExportedExchange[],
  find: FindExchange,
): Promise<readonly string[]> => {
  const selected = new Map(chosen.map(exchange => [exchange.id, exchange]))
  const missing = new Set<string>() // forgotten
  // A map is iterated with what is added meanwhile.
  for (const { continues, continuedBy } of selected.values())
    for (const id of [continues, continuedBy]) {
      if (id === undefined || selected.has(id) || missing.has(id)) continue
      const found = await find(id)
      if (found) selected.set(id, toExported(found))
      else missing.add(id)
    }
  return [...selected.values()].sort((a, b) => a.order - b.order).map(({ id }) => id)
}
