import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Recording, RecordingSummary } from '../../../admin/api/recorder.ts'
import { api, messageOf } from '../../api.ts'
import { useShortcuts } from '../../keys.ts'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { plural } from '../../parts/format.ts'
import { SkeletonRows } from '../../parts/page-frame.tsx'
import { alignMessages, readRecordedMessages } from './align.ts'
import { ExchangeHead } from './exchange-head.tsx'
import { groupPairs, type PairGroup } from './group-pairs.ts'
import { PairView } from './pair-view.tsx'
import { RECORDINGS } from './recordings-model.ts'
import { DialectName } from './recordings-table.tsx'
import { waterfallOf } from './waterfall.ts'
import { WaterfallView } from './waterfall-view.tsx'

export interface ExchangeViewProps {
  readonly id: string
  readonly summary: RecordingSummary | undefined // its row, if it is in the list
  readonly onClose: () => void
  readonly onNewer: (() => void) | undefined // undefined: there is none
  readonly onOlder: (() => void) | undefined
}

/** One exchange, and the keys that lead on to others: they work while the next one is loaded, too. */
export const ExchangeView = (props: ExchangeViewProps) => {
  const { id, onClose, onNewer, onOlder } = props
  useShortcuts('Exchange', [
    { keys: 'Escape', label: 'Back to the list', run: onClose },
    { keys: '[', label: 'Newer exchange', run: () => onNewer?.() },
    { keys: ']', label: 'Older exchange', run: () => onOlder?.() },
    { keys: 'k', label: 'Newer exchange', run: () => onNewer?.() },
    { keys: 'j', label: 'Older exchange', run: () => onOlder?.() },
  ])
  return <LoadedExchange key={id} {...props} />
}

/** Its facts, its timings, and its messages on both sides. */
const LoadedExchange = ({ id, summary, onClose, onNewer, onOlder }: ExchangeViewProps) => {
  const { recording, problem } = useRecording(id, summary)
  return (
    <div class="rec-exchange">
      {recording ? (
        <>
          <ExchangeHead recording={recording} onClose={onClose} onNewer={onNewer} onOlder={onOlder} />
          <div class="rec-exchange-body" tabIndex={0} role="group" aria-label="Messages">
            <Messages recording={recording} />
          </div>
        </>
      ) : problem === undefined ? (
        <SkeletonRows count={10} />
      ) : (
        <Empty icon="recorder" title="This exchange cannot be shown" text={problem}>
          <Button onClick={onClose} keys="Escape">
            Back to the list
          </Button>
        </Empty>
      )}
    </div>
  )
}

/** Reads an exchange, and again when it has ended or has more messages. */
const useRecording = (id: string, summary: RecordingSummary | undefined) => {
  const [loaded, setLoaded] = useState<{ readonly recording?: Recording; readonly problem?: string }>({})
  // A row that has changed is a reason to read again.
  const version = summary && `${summary.outcome} ${summary.messages} ${summary.continuedBy ?? ''}`
  useEffect(() => {
    const stop = new AbortController()
    api.get<Recording>(`${RECORDINGS}/${encodeURIComponent(id)}`, { signal: stop.signal }).then(
      recording => setLoaded({ recording }),
      (error: unknown) => {
        if (!stop.signal.aborted) setLoaded(before => (before.recording ? before : { problem: messageOf(error) }))
      },
    )
    return () => stop.abort()
  }, [id, version])
  return loaded
}

const SHOWN_GROUPS = 60
const OPEN_PAIRS = 12 // those with changes are open at first

const Messages = ({ recording }: { readonly recording: Recording }) => {
  const [isWhole, setWhole] = useState(false)
  const messages = useMemo(() => readRecordedMessages(recording.all, recording.method), [recording])
  const pairs = useMemo(() => alignMessages(messages), [messages])
  const groups = useMemo(() => groupPairs(pairs), [pairs])
  const waterfall = useMemo(() => waterfallOf(recording, messages), [recording, messages])
  const shown = isWhole ? groups : groups.slice(0, SHOWN_GROUPS)
  const { client, dialect, revision, servers } = recording
  const [server, ...others] = servers
  return (
    <>
      <WaterfallView waterfall={waterfall} />
      <div class="rec-sides">
        <h2>
          Client <DialectName name={client} dialect={dialect} revision={revision} />
        </h2>
        <h2>
          {others.length > 0 ? `${servers.length} servers` : 'Server'}{' '}
          {server ? (
            servers.map(each => <DialectName key={each.name} {...each} dialect={each.dialect} />)
          ) : (
            <span class="quiet">none was asked</span>
          )}
        </h2>
      </div>
      {shown.map((group, at) => (
        <Group key={at} group={group} pairs={pairs} recording={recording} isOpenAtFirst={at < OPEN_PAIRS} />
      ))}
      {groups.length > shown.length && (
        <p class="rec-rest">
          <Button onClick={() => setWhole(true)}>Show {plural(groups.length - shown.length, 'more message')}</Button>
        </p>
      )}
      {recording.dropped > 0 && (
        <p class="rec-rest quiet">
          {plural(recording.dropped, 'further message')} of this exchange {recording.dropped === 1 ? 'was' : 'were'} not
          kept: the limit of one exchange was reached.
        </p>
      )}
      {recording.dropped < 0 && (
        <p class="rec-rest quiet">
          It failed in a burst of exchanges. Of those, only failures are recorded, without the messages with servers.
        </p>
      )}
      {recording.outcome === 'running' && <p class="rec-rest quiet">Running: more messages may follow.</p>}
    </>
  )
}

interface GroupProps {
  readonly group: PairGroup
  readonly pairs: ReturnType<typeof alignMessages>
  readonly recording: Recording
  readonly isOpenAtFirst: boolean
}

/** A pair, or the first of several notifications with a button for the others. */
const Group = ({ group, pairs, recording, isOpenAtFirst }: GroupProps) => {
  const [isOpen, setOpen] = useState(false)
  const { first, more } = group
  const method = (first.client ?? first.server)?.method ?? 'notification'
  return (
    <>
      <PairView pair={first} pairs={pairs} recording={recording} isOpenAtFirst={isOpenAtFirst} />
      {more.length > 0 && !isOpen && (
        <button type="button" class="rec-fold" onClick={() => setOpen(true)}>
          {plural(more.length, `more ${method}`, `more ${method}`)}
        </button>
      )}
      {isOpen &&
        more.map((pair, at) => (
          <PairView key={at} pair={pair} pairs={pairs} recording={recording} isOpenAtFirst={false} />
        ))}
    </>
  )
}
