import type { Recording } from '../../../admin/api/recorder.ts'
import { Badge, StateDot } from '../../parts/badge.tsx'
import { Button, IconButton } from '../../parts/button.tsx'
import { copyText } from '../../parts/copy-button.tsx'
import { formatAbsolute, plural } from '../../parts/format.ts'
import { Menu } from '../../parts/menu.tsx'
import { Bytes, Duration } from '../../parts/quantities.tsx'
import { toast } from '../../parts/toast.tsx'
import { hrefTo } from '../../router.ts'
import { endingText, OUTCOMES } from './filters.ts'
import { exportRecordings } from './recorder-toolbar.tsx'
import { formatClock } from './recordings-table.tsx'

export interface ExchangeHeadProps {
  readonly recording: Recording
  readonly onClose: () => void
  readonly onNewer: (() => void) | undefined
  readonly onOlder: (() => void) | undefined
}

const fileOf = (id: string): string => `recording-${id}.jsonl`

/** Where Explore can do the same again; undefined for methods that it has no form for. */
const exploreHref = ({ method, workspace, subject }: Recording): string | undefined => {
  const kind = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' }[method]
  return kind === undefined || subject === undefined ? undefined : hrefTo('explore', [workspace, kind, subject])
}

/** What was called, how it ended, and what can be done with the recording. */
export const ExchangeHead = ({ recording, onClose, onNewer, onOlder }: ExchangeHeadProps) => {
  const { id, at, method, subject, outcome, durationMs, bytes, workspace, principal, isTranslated } = recording
  const explore = exploreHref(recording)
  const ending = endingText(recording)
  const copyReplay = (): void => {
    copyText(`dragoman replay ${fileOf(id)}`).then(
      () => toast('Copied. Export the file to the same folder first.', { kind: 'ok' }),
      () => toast('Not copied: the browser did not allow it', { kind: 'error' }),
    )
  }
  return (
    <header class="rec-exchange-head">
      <div class="rec-title">
        <IconButton icon="chevron-left" label="Back to the list (Esc)" onClick={onClose} />
        <h2 class="truncate">
          <span class="quiet">{method}</span> {subject}
        </h2>
        <StateDot {...OUTCOMES[outcome]} />
        {isTranslated && (
          <Badge kind="accent" icon="swap">
            Translated
          </Badge>
        )}
        <span class="rec-actions">
          {explore !== undefined && (
            <a class="button button-plain" href={explore}>
              Call again
            </a>
          )}
          <Button icon="download" onClick={() => void exportRecordings(new URLSearchParams({ id }), fileOf(id))}>
            Export
          </Button>
          <Menu
            label="More actions"
            items={[{ label: 'Copy as dragoman replay', icon: 'copy', onSelect: copyReplay }]}
          />
          <IconButton icon="chevron-up" label="Newer exchange ([)" disabled={!onNewer} onClick={() => onNewer?.()} />
          <IconButton icon="chevron-down" label="Older exchange (])" disabled={!onOlder} onClick={() => onOlder?.()} />
        </span>
      </div>
      <p class="rec-facts">
        <time dateTime={new Date(at).toISOString()} title={formatAbsolute(at)}>
          {formatClock(at)}
        </time>
        {durationMs !== undefined && <Duration ms={durationMs} />}
        <span>{plural(recording.messages, 'message')}</span>
        <Bytes value={bytes} />
        <span>workspace {workspace}</span>
        {principal !== undefined && <span>as {principal}</span>}
        {recording.continues !== undefined && (
          <a href={hrefTo('recorder', [recording.continues])}>← the exchange that asked</a>
        )}
        {recording.continuedBy !== undefined && (
          <a href={hrefTo('recorder', [recording.continuedBy])}>the exchange with the answers →</a>
        )}
      </p>
      {ending !== undefined && (
        <p class={outcome === 'cancelled' ? 'quiet rec-message' : 'rec-error rec-message'}>{ending}</p>
      )}
    </header>
  )
}
