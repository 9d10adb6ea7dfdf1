import { useEffect, useMemo, useState } from 'preact/hooks'
import type { MemoryTimeline, TimelineItem } from '../../../protocol/memory-views.ts'
import { api, messageOf } from '../../api.ts'
import { Badge } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { formatAbsolute } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { Select } from '../../parts/select.tsx'
import { toast } from '../../parts/toast.tsx'
import { VirtualList } from '../../parts/virtual-list.tsx'
import { navigate } from '../../router.ts'
import { repeatsText } from './highlight.ts'
import { type MemoryPlace, memoryHref, memoryQuery } from './memory-address.ts'
import { useMemoryData } from './memory-client.ts'
import { isPast, spanText } from './memory-dates.ts'
import { MemoryFailure, MemoryLoading } from './memory-states.tsx'
import { type TimelineRow, timelineKey, timelineRows } from './timeline-rows.ts'

const KINDS = [
  { value: 'all', label: 'Episodes and facts' },
  { value: 'episode', label: 'Episodes' },
  { value: 'fact', label: 'Facts' },
] as const

type Kind = (typeof KINDS)[number]['value']

/** Episodes and facts by time, newest first. */
export const TimelineView = ({ place }: { readonly place: MemoryPlace }) => {
  const [kind, setKind] = useState<Kind>('all')
  const path = `admin/memory/timeline${memoryQuery(place, { kind: kind === 'all' ? undefined : kind })}`
  const { data: first, error } = useMemoryData<MemoryTimeline>(path)
  return (
    <>
      <div class="memory-filters">
        <Select label="What is shown" value={kind} options={KINDS} onChange={setKind} />
        {place.asOf !== undefined && (
          <span class="quiet">Facts that were true on {place.asOf}, and episodes until then</span>
        )}
      </div>
      {error !== undefined && <MemoryFailure message={error} />}
      {error === undefined && !first && <MemoryLoading />}
      {error === undefined && first && <TimelineRows key={path} first={first} path={path} place={place} />}
    </>
  )
}

const readPage = (path: string, after: string): Promise<MemoryTimeline> =>
  api.get<MemoryTimeline>(`${path}${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}`)

/** So many pages after the first one, or all. */
const readAfter = async (path: string, first: MemoryTimeline, count: number): Promise<readonly MemoryTimeline[]> => {
  const pages: MemoryTimeline[] = []
  for (let { next } = first; next !== undefined && pages.length < count; next = pages.at(-1)?.next)
    pages.push(await readPage(path, next))
  return pages
}

interface TimelineRowsProps {
  readonly first: MemoryTimeline
  readonly path: string
  readonly place: MemoryPlace
}

const TimelineRows = ({ first, path, place }: TimelineRowsProps) => {
  const [later, setLater] = useState<readonly MemoryTimeline[]>([])
  const [selected, setSelected] = useState<string | undefined>()
  // It was read again after a change: the pages after it are read again too, so that the reader stays where they are.
  useEffect(() => {
    if (later.length === 0) return
    let isLatest = true
    readAfter(path, first, later.length).then(
      pages => isLatest && setLater(pages),
      (error: unknown) => void toast(messageOf(error), { kind: 'error' }),
    )
    return () => {
      isLatest = false
    }
  }, [first])
  const pages = [first, ...later]
  const next = pages.at(-1)?.next
  const rows = useMemo(() => {
    const items = new Map([first, ...later].flatMap(page => page.items.map(item => [timelineKey(item), item])))
    return timelineRows([...items.values()], next !== undefined, Date.now())
  }, [first, later, next])
  const loadMore = async (): Promise<void> => {
    if (next === undefined) return
    try {
      const more = await readPage(path, next)
      setLater(before =>
        before.at(-1)?.next === next || (before.length === 0 && first.next === next) ? [...before, more] : before,
      )
    } catch (thrown) {
      toast(messageOf(thrown), { kind: 'error' })
    }
  }
  const open = (row: TimelineRow): void => {
    if (row.kind !== 'item') return
    const { item } = row
    const target =
      item.kind === 'episode'
        ? ({ view: 'episode', id: item.episode.id } as const)
        : ({ view: 'entity', id: item.fact.source.id } as const)
    navigate(memoryHref({ ...place, ...target, query: '' }))
  }
  return (
    <VirtualList
      label="Timeline; Enter opens an entry"
      items={rows}
      keyOf={({ key }) => key}
      selected={selected}
      onSelect={row => setSelected(row.key)}
      onOpen={open}
      opensOnClick
      isMain
      empty={
        <Empty
          icon="clock"
          title="Nothing at this time"
          text="No episode happened and no fact was true. Choose a later date, or another group."
        />
      }
      row={row => <TimelineRowView row={row} onMore={loadMore} />}
    />
  )
}

interface RowViewProps {
  readonly row: TimelineRow
  readonly onMore: () => void
}

const TimelineRowView = ({ row, onMore }: RowViewProps) => {
  switch (row.kind) {
    case 'day':
      return (
        <span class="timeline-day">
          {row.title} <span class="tab-count">{row.count}</span>
        </span>
      )
    case 'more':
      return <MoreRow onMore={onMore} />
    case 'item':
      return <ItemRow item={row.item} />
  }
}

/** The next page is loaded when its place comes into sight. */
const MoreRow = ({ onMore }: { readonly onMore: () => void }) => {
  useEffect(onMore, [])
  return <span class="quiet">Loading more…</span>
}

const ItemRow = ({ item }: { readonly item: TimelineItem }) => {
  const isOld = item.kind === 'fact' && isPast(item.fact, Date.now())
  return (
    <span class="timeline-item">
      <span class="quiet timeline-time">{formatAbsolute(item.at).slice(11, 16)}</span>
      <Icon name={item.kind === 'episode' ? 'recorder' : 'link'} />
      <span class="visually-hidden">{item.kind}</span>
      <span class={isOld ? 'truncate timeline-text memory-past' : 'truncate timeline-text'}>
        {item.kind === 'fact' ? item.fact.text : <EpisodeLine item={item} />}
      </span>
      {item.kind === 'fact' && <span class="quiet timeline-span">{spanText(item.fact)}</span>}
      {item.kind === 'episode' && item.episode.state !== 'ready' && (
        <Badge kind={item.episode.state === 'failed' ? 'error' : 'neutral'}>{item.episode.state}</Badge>
      )}
      <Badge>{item.kind === 'fact' ? item.fact.group : item.episode.group}</Badge>
    </span>
  )
}

const EpisodeLine = ({ item }: { readonly item: Extract<TimelineItem, { readonly kind: 'episode' }> }) => {
  const { name, text } = item.episode
  return (
    <>
      <strong>{name}</strong>
      {!repeatsText(name, text) && <span class="quiet"> {text}</span>}
    </>
  )
}
