import type { MessagePair } from './align.ts'

/** Pairs that are shown together: notifications of one method that follow each other, or a single pair. */
export interface PairGroup {
  readonly first: MessagePair
  readonly more: readonly MessagePair[]
}

const LEAST = 4

const methodOf = ({ client, server }: MessagePair): string | undefined => {
  const message = client ?? server
  return message?.role === 'notification' ? `${message.flow} ${message.method} ${message.server ?? ''}` : undefined
}

/** Joins runs of notifications, such as progress: a call may have a thousand of them. */
export const groupPairs = (pairs: readonly MessagePair[]): readonly PairGroup[] => {
  const groups: { first: MessagePair; more: MessagePair[] }[] = []
  for (const pair of pairs) {
    const last = groups.at(-1)
    const method = methodOf(pair)
    if (last && method !== undefined && methodOf(last.first) === method) last.more.push(pair)
    else groups.push({ first: pair, more: [] })
  }
  return groups.flatMap(group =>
    group.more.length + 1 < LEAST ? [group.first, ...group.more].map(first => ({ first, more: [] })) : [group],
  )
}
