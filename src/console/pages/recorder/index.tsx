import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { FeedEvents } from '../../../admin/api/events.ts'
import type { RecordingSummary } from '../../../admin/api/recorder.ts'
import { feedState, onFeed } from '../../events.ts'
import { useShortcuts } from '../../keys.ts'
import { PageFrame, SkeletonRows } from '../../parts/page-frame.tsx'
import { Table } from '../../parts/table.tsx'
import { hrefTo, navigate, type PageProps, route } from '../../router.ts'
import { isOwner } from '../../session.ts'
import { NoRecordings, OwnerOnly } from './empty-states.tsx'
import { ExchangeView } from './exchange-view.tsx'
import { filterQuery, type RecordingFilter, readFilter } from './filters.ts'
import { RecorderFilters, RecorderToolbar } from './recorder-toolbar.tsx'
import { RecordingsModel } from './recordings-model.ts'
import { longestInSight, RECORDING_COLUMNS } from './recordings-table.tsx'

const PAGE = 'recorder'
const NEAR_END = 40 // rows before the end of the list at which older ones are loaded

/** The page Recorder: exchanges between clients and servers, newest first; one of them opens with both its sides. */
export const RecorderPage = ({ path, query }: PageProps) => {
  const filter = useFilter(query)
  const model = useModel(filter)
  const [selected, setSelected] = useState<string | undefined>(path[0])
  const [isPaused, setPaused] = useState(false)
  const [isScrolled, setScrolled] = useState(false)
  model.isHeld = isPaused || isScrolled
  const openId = path[0]
  const rows = model.rows.value

  const setFilter = (next: RecordingFilter): void => navigate(hrefTo(PAGE, [], filterQuery(next)), { replace: true })
  const open = ({ id }: RecordingSummary): void => {
    setSelected(id)
    navigate(hrefTo(PAGE, [id], filterQuery(filter)))
  }
  const close = (): void => navigate(hrefTo(PAGE, [], filterQuery(filter)))
  const pause = (next: boolean): void => {
    setPaused(next)
    if (!next && !isScrolled) model.release()
  }
  useShortcuts('Recorder', [{ keys: 'p', label: 'Pause or resume the list', run: () => pause(!isPaused) }])

  const onRange = (from: number, to: number): void => {
    const seen = model.rows.peek().slice(from, to)
    longestInSight.value = Math.max(0, ...seen.map(({ durationMs = 0 }) => durationMs))
    if (from > 0 !== isScrolled) setScrolled(from > 0)
    if (to + NEAR_END >= model.rows.peek().length) void model.loadMore()
  }
  const box = useRef<HTMLDivElement>(null)
  const showNew = (): void => {
    model.release()
    box.current?.querySelector('.table')?.scrollTo({ top: 0 })
  }
  const at = openId === undefined ? -1 : rows.findIndex(({ id }) => id === openId)
  const step = (by: number): (() => void) | undefined => (rows[at + by] && at >= 0 ? () => openBeside(by) : undefined)
  /** Several keys may arrive before the page is drawn again: the address says which exchange is open now. */
  const openBeside = (by: number): void => {
    const all = model.rows.peek()
    const now = all.findIndex(({ id }) => id === route.peek().path[0])
    const next = now < 0 ? undefined : all[now + by]
    if (next) open(next)
  }
  const isEmpty = model.facts.value !== undefined && rows.length === 0
  return (
    <PageFrame
      title="Recorder"
      detail={openId}
      toolbar={
        openId === undefined && (
          <RecorderToolbar model={model} filter={filter} onFilter={setFilter} isPaused={isPaused} onPause={pause} />
        )
      }
    >
      <div class="rec" ref={box}>
        <div class="rec-list" inert={openId !== undefined}>
          <RecorderFilters model={model} filter={filter} onFilter={setFilter} />
          {model.waiting.value > 0 && (
            <button type="button" class="rec-new" onClick={showNew}>
              {model.waiting.value.toLocaleString('en')} new
            </button>
          )}
          {isEmpty || model.problem.value !== undefined ? (
            <NoRecordings model={model} filter={filter} onFilter={setFilter} />
          ) : model.facts.value === undefined ? (
            <SkeletonRows count={12} />
          ) : (
            <Table
              label="Exchanges"
              columns={RECORDING_COLUMNS}
              rows={rows}
              keyOf={({ id }) => id}
              selected={selected}
              onSelect={({ id }) => setSelected(id)}
              onOpen={open}
              opensOnClick
              isMain={openId === undefined}
              onRange={onRange}
            />
          )}
        </div>
        {openId !== undefined &&
          (isOwner.value ? (
            <ExchangeView id={openId} summary={rows[at]} onClose={close} onNewer={step(-1)} onOlder={step(1)} />
          ) : (
            <OwnerOnly onClose={close} />
          ))}
      </div>
    </PageFrame>
  )
}

/** The filter of the address; the same object while nothing in it changes. */
const useFilter = (query: URLSearchParams): RecordingFilter => {
  const text = new URLSearchParams(filterQuery(readFilter(query))).toString()
  return useMemo(() => readFilter(new URLSearchParams(text)), [text])
}

const SEARCH_MS = 200

/** The list of a filter. A search begins when the user pauses to type. */
const useModel = (filter: RecordingFilter): RecordingsModel => {
  const [model, setModel] = useState(() => new RecordingsModel(filter))
  useEffect(() => {
    if (filter === model.filter) return
    const isTyped = filter.search !== model.filter.search
    const timer = setTimeout(() => setModel(new RecordingsModel(filter)), isTyped ? SEARCH_MS : 0)
    return () => clearTimeout(timer)
  }, [filter, model])
  useEffect(() => {
    void model.load()
    const stops = [
      onFeed('recording', data => model.take(data as readonly RecordingSummary[])),
      onFeed('dropped', data => {
        if ((data as FeedEvents['dropped']).kind === 'recording') model.missed()
      }),
    ]
    let isFirst = true
    stops.push(
      feedState.subscribe(state => {
        if (state !== 'live') return
        if (!isFirst) model.missed() // events were lost while there was no connection
        isFirst = false
      }),
    )
    return () => {
      for (const stop of stops) stop()
      model.close()
    }
  }, [model])
  return model
}
