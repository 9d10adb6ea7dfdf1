import type { TimelineItem } from '../../../protocol/memory-views.ts'
import { dayHeading, dayOf } from './memory-dates.ts'

/** A row of the timeline: the heading of a day, an item, or what loads the next page. */
export type TimelineRow =
  | { readonly kind: 'day'; readonly key: string; readonly title: string; readonly count: number }
  | { readonly kind: 'item'; readonly key: string; readonly item: TimelineItem }
  | { readonly kind: 'more'; readonly key: string }

export const timelineKey = (item: TimelineItem): string =>
  `${item.kind} ${item.kind === 'episode' ? item.episode.id : item.fact.id}`

/** Items, newest first, with a heading for each day. */
export const timelineRows = (items: readonly TimelineItem[], hasMore: boolean, now: number): readonly TimelineRow[] => {
  const rows: TimelineRow[] = []
  for (let from = 0; from < items.length; ) {
    const first = items[from]
    if (!first) break
    const day = dayOf(first.at)
    let to = from
    while (to < items.length && dayOf(items[to]?.at ?? 0) === day) to++
    rows.push({ kind: 'day', key: `day ${day} ${from}`, title: dayHeading(first.at, now), count: to - from })
    for (const item of items.slice(from, to)) rows.push({ kind: 'item', key: timelineKey(item), item })
    from = to
  }
  return hasMore ? [...rows, { kind: 'more', key: 'more' }] : rows
}
