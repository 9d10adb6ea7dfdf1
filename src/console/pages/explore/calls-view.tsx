import { stringifyExact } from '../../exact-json.ts'
import { createForm } from '../../form/form-state.ts'
import { StateDot } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { formatBytes, formatDuration } from '../../parts/format.ts'
import { JsonText } from '../../parts/json-text.tsx'
import { Time } from '../../parts/quantities.tsx'
import { Table, type TableColumn } from '../../parts/table.tsx'
import { hrefTo, navigate } from '../../router.ts'
import { CallView } from './call-view.tsx'
import { type CallRecord, calls } from './calls.ts'
import { formKey, keepForm } from './forms.ts'

const DOTS = { running: 'busy', done: 'ok', failed: 'error', cancelled: 'off' } as const

const lastsMs = ({ startedAt, state }: CallRecord): number => (state.value.endedAt ?? Date.now()) - startedAt

const phaseText = ({ state }: CallRecord): string => {
  const { phase, questions, result } = state.value
  if (questions.length > 0) return 'asks you'
  return result?.result.isError === true ? 'tool error' : phase
}

const isError = ({ state }: CallRecord): boolean => state.value.result?.result.isError === true

const COLUMNS: readonly TableColumn<CallRecord>[] = [
  { id: 'at', title: 'Started', width: '110px', hideBelow: 480, cell: ({ startedAt }) => <Time at={startedAt} /> },
  {
    id: 'state',
    title: 'State',
    width: '110px',
    cell: record => (
      <StateDot state={isError(record) ? 'error' : DOTS[record.state.value.phase]} label={phaseText(record)} />
    ),
  },
  {
    id: 'method',
    title: 'Method',
    width: '130px',
    hideBelow: 640,
    cell: ({ method }) => <span class="mono">{method}</span>,
  },
  { id: 'subject', title: 'Name', cell: ({ subject }) => <span class="mono">{subject}</span> },
  { id: 'target', title: 'Target', width: '120px', hideBelow: 560, cell: ({ target }) => target },
  { id: 'revision', title: 'Revision', width: '100px', hideBelow: 720, cell: ({ revision }) => revision },
  { id: 'time', title: 'Time', width: '90px', isNumber: true, cell: record => formatDuration(lastsMs(record)) },
  {
    id: 'size',
    title: 'Result',
    width: '90px',
    isNumber: true,
    hideBelow: 720,
    cell: ({ state }) => (state.value.result ? formatBytes(state.value.result.text.length) : ''),
  },
]

const NONE = (
  <Empty icon="clock" title="No calls yet" text="Everything that you call here is listed, until the page is closed." />
)

/** The calls of this page, newest first. */
export const CallsTable = ({
  selected,
  onSelect,
}: {
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
}) => (
  <Table
    label="Calls"
    columns={COLUMNS}
    rows={calls.value}
    keyOf={({ id }) => String(id)}
    selected={selected}
    onSelect={({ id }) => onSelect(String(id))}
    isMain
    empty={NONE}
  />
)

/** A call of the list, with its arguments; it can be made again. */
export const CallDetail = ({ record }: { readonly record: CallRecord }) => {
  const { kind, target, subject, params, method } = record
  const open = (): void => {
    const given = params.arguments
    if (typeof given === 'object' && given !== null) keepForm(formKey(target, kind, subject), createForm({}, given))
    navigate(hrefTo('explore', [target, kind, subject]))
  }
  return (
    <div class="item-detail">
      <p class="item-hints">
        <span class="mono">{method}</span>
        {kind !== 'outside' && (
          <Button icon="edit" onClick={open}>
            Open with these arguments
          </Button>
        )}
      </p>
      <JsonText text={stringifyExact(params)} label="the params" />
      <CallView key={record.id} record={record} />
    </div>
  )
}
