import { useMemo, useState } from 'preact/hooks'
import type { Recording } from '../../../admin/api/recorder.ts'
import { formatBytes, formatDuration, plural } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import type { MessagePair, ReadMessage } from './align.ts'
import { comparePair, type ExplainedChanges, type PairComparison } from './compare-pair.ts'
import { DiffView } from './diff-view.tsx'
import type { Explanation } from './explain.ts'
import { statusOf } from './headers.ts'
import { HeadersView, MessageTexts } from './message-texts.tsx'
import { explainSingle } from './notes.ts'

export interface PairViewProps {
  readonly pair: MessagePair
  readonly pairs: readonly MessagePair[]
  readonly recording: Recording
  readonly isOpenAtFirst: boolean // if anything was changed
}

type PairTab = 'compare' | 'pretty' | 'raw' | 'headers'
const TABS: Readonly<Record<PairTab, string>> = { compare: 'Compare', pretty: 'Pretty', raw: 'Raw', headers: 'Headers' }

/** A message on both sides of the gateway: what was changed, and why. */
export const PairView = ({ pair, pairs, recording, isOpenAtFirst }: PairViewProps) => {
  const { client, server, flow } = pair
  const comparison = useMemo(() => comparePair(pair, recording), [pair, recording])
  const isChanged = (comparison?.explanations.length ?? 0) > 0
  const isNotification = (client ?? server)?.role === 'notification'
  const [isOpen, setOpen] = useState(isChanged && isOpenAtFirst && !isNotification)
  const [chosen, setChosen] = useState<PairTab | undefined>(undefined)
  const single = client && server ? undefined : explainSingle(pair, recording, pairs)
  const tabs = (Object.keys(TABS) as PairTab[]).filter(
    tab => (tab !== 'compare' || isChanged) && (tab !== 'headers' || client?.headers || server?.headers),
  )
  const tab = chosen ?? tabs[0] ?? 'pretty'
  const label = `${client?.method ?? server?.method ?? ''} ${flow === 'toServer' ? 'to the server' : 'to the client'}`
  return (
    <section class={`rec-pair rec-${flow}`} aria-label={label}>
      <h3>
        <button type="button" class="rec-pair-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <MessageHead message={client} pair={pair} note={single?.text} />
          <MessageHead message={server} pair={pair} note={single?.text} hasName={recording.servers.length > 1} />
          <span class="rec-verdict">
            {verdictOf(pair, comparison)}
            <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} />
          </span>
        </button>
      </h3>
      {isOpen && (
        <div class="rec-pair-body">
          <div class="rec-views" role="group" aria-label="How the messages are shown">
            {tabs.map(each => (
              <button key={each} type="button" aria-pressed={each === tab} onClick={() => setChosen(each)}>
                {TABS[each]}
              </button>
            ))}
          </div>
          {single?.reference && <p class="rec-note">{sentence(single)}</p>}
          {[client, server].map(message => message?.isCut && <CutNote key={message.index} message={message} />)}
          {tab === 'compare' && comparison ? (
            <Explained comparison={comparison} flow={flow} />
          ) : tab === 'headers' ? (
            <HeadersView pair={pair} />
          ) : (
            <MessageTexts pair={pair} isPretty={tab !== 'raw'} />
          )}
        </div>
      )}
    </section>
  )
}

const ROLES: Readonly<Record<ReadMessage['role'], string>> = {
  request: 'request',
  retry: 'request with answers',
  notification: '',
  response: 'result',
  asks: 'result with questions',
  question: 'question',
  answer: 'answer',
}

interface MessageHeadProps {
  readonly message: ReadMessage | undefined
  readonly pair: MessagePair
  readonly note?: string | undefined // in place of a message that is not there
  readonly hasName?: boolean // the server's name is shown
}

const MessageHead = ({ message, pair, note, hasName = false }: MessageHeadProps) => {
  const arrow = pair.flow === 'toServer' ? '→' : '←'
  if (!message)
    return (
      <span class="rec-head rec-absent">
        <span class="truncate">{note}</span>
      </span>
    )
  const { kind, role, method, atMs, bytes, server } = message
  const what = kind === 'error' ? 'error' : ROLES[role]
  const status = statusOf(message)
  return (
    <span class="rec-head">
      <span class="rec-arrow" aria-hidden="true">
        {arrow}
      </span>
      <span class="truncate">
        <span class="mono">{method ?? ''}</span> <span class={kind === 'error' ? 'rec-error' : 'quiet'}>{what}</span>
        {status !== undefined && <span class={isRefusal(status) ? 'rec-error' : 'quiet'}> · HTTP {status}</span>}
        {hasName && server !== undefined && <span class="quiet"> · {server}</span>}
      </span>
      <span
        class="rec-figures"
        title={`${atMs.toLocaleString('en')} ms after the start, ${bytes.toLocaleString('en')} bytes`}
      >
        +{formatDuration(atMs)} · {formatBytes(bytes)}
      </span>
    </span>
  )
}

const isRefusal = (status: string): boolean => !status.startsWith('2')

const verdictOf = (pair: MessagePair, comparison: PairComparison | undefined): string => {
  const { client, server } = pair
  if (!client || !server) return 'one side'
  if (!comparison) return client.isCut || server.isCut ? 'cut' : 'not compared'
  const count = comparison.explanations.reduce((sum, { changes }) => sum + changes.length, 0)
  return count === 0 ? 'passed through unchanged' : plural(count, 'change')
}

const CutNote = ({ message }: { readonly message: ReadMessage }) => (
  <p class="rec-note">
    The message of the {message.side} had {formatBytes(message.bytes)}. The first {formatBytes(message.text.length)} are
    kept, so it cannot be compared.
  </p>
)

/** The comparison, and under it a sentence for each kind of change. */
const Explained = ({
  comparison,
  flow,
}: {
  readonly comparison: PairComparison
  readonly flow: MessagePair['flow']
}) => {
  const [active, setActive] = useState<number | undefined>(undefined)
  return (
    <>
      <DiffView comparison={comparison} flow={flow} active={active} />
      <ol class="rec-why" aria-label="Why it was changed">
        {comparison.explanations.map(explanation => (
          <li
            key={explanation.number}
            onMouseEnter={() => setActive(explanation.number)}
            onMouseLeave={() => setActive(undefined)}
          >
            <span class="rec-number">{explanation.number}</span>
            <p>{sentence(explanation)}</p>
            <p class="rec-paths">{pathsOf(explanation)}</p>
          </li>
        ))}
      </ol>
    </>
  )
}

const sentence = ({ text, reference }: Explanation) => (
  <>
    {text}{' '}
    {reference &&
      (reference.href === undefined ? (
        <span class="quiet">{reference.label}</span>
      ) : (
        <a href={reference.href} target="_blank" rel="noreferrer">
          {reference.label}
        </a>
      ))}
  </>
)

const MOST_PATHS = 6

const pathsOf = ({ changes }: ExplainedChanges) => {
  const shown = changes.slice(0, MOST_PATHS).map(({ verb, path }) => `${verb} ${path}`)
  return changes.length > MOST_PATHS
    ? [...shown, `and ${changes.length - MOST_PATHS} more`].join(', ')
    : shown.join(', ')
}
