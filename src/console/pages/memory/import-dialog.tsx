import { useEffect, useRef, useState } from 'preact/hooks'
import type { ImportSummary } from '../../../protocol/memory-views.ts'
import { messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, TextInputField } from '../../parts/field.tsx'
import { formatBytes, formatCount, plural } from '../../parts/format.ts'
import { Select } from '../../parts/select.tsx'
import { uploadFile } from '../../upload.ts'
import { type MemoryPlace, memoryQuery } from './memory-address.ts'
import { memoryChanged } from './memory-client.ts'

export interface ImportDialogProps {
  readonly place: MemoryPlace
  readonly formats: readonly string[]
  readonly mostBytes: number
  readonly onClose: () => void
}

const FORMATS: Readonly<Record<string, string>> = {
  dragoman: 'An export of Dragoman',
  'server-memory': 'server-memory (MCP reference server)',
  graphiti: 'Graphiti episodes',
  chat: 'Chats or conversations',
  markdown: 'Markdown',
  text: 'Text',
}

/** Imports a file: sent in a stream with its progress; then says what was stored and what was not. */
export const ImportDialog = ({ place, formats, mostBytes, onClose }: ImportDialogProps) => {
  const [file, setFile] = useState<File | undefined>()
  const [format, setFormat] = useState('')
  const [group, setGroup] = useState('')
  const [sent, setSent] = useState<number | undefined>()
  const [report, setReport] = useState<ImportSummary | undefined>()
  const [error, setError] = useState<string | undefined>()
  const abort = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => abort.current?.abort(), [])

  const tooLarge =
    file && file.size > mostBytes
      ? `${formatBytes(file.size)} is more than the ${formatBytes(mostBytes)} that are imported here. On the machine of the gateway: dragoman memory import FILE`
      : undefined
  const start = async (): Promise<void> => {
    if (!file || tooLarge !== undefined) return
    abort.current = new AbortController()
    setError(undefined)
    setSent(0)
    const query = memoryQuery(
      { ...place, group: undefined, asOf: undefined },
      {
        name: file.name,
        modified: String(file.lastModified),
        format: format || undefined,
        group: group.trim() || undefined,
      },
    )
    try {
      setReport(
        await uploadFile(`admin/memory/import${query}`, file, { onProgress: setSent, signal: abort.current.signal }),
      )
    } catch (thrown) {
      setError(messageOf(thrown))
    }
    setSent(undefined)
    memoryChanged()
  }
  const isRunning = sent !== undefined
  return (
    <Dialog
      title="Import"
      size="medium"
      onClose={onClose}
      onSubmit={() => void (report ? onClose() : start())}
      footer={
        report ? (
          <Button type="submit" kind="primary">
            Close
          </Button>
        ) : (
          <>
            <Button onClick={isRunning ? () => abort.current?.abort() : onClose}>
              {isRunning ? 'Stop' : 'Cancel'}
            </Button>
            <Button type="submit" kind="primary" isBusy={isRunning} disabled={!file || tooLarge !== undefined}>
              Import
            </Button>
          </>
        )
      }
    >
      {report ? (
        <ImportReportView report={report} />
      ) : (
        <>
          <Field
            label="File"
            isRequired
            error={tooLarge ?? error}
            hint={`Up to ${formatBytes(mostBytes)}. An import can be repeated: what is known stays as it is.`}
          >
            {control => (
              <input
                {...control}
                type="file"
                disabled={isRunning}
                onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])}
              />
            )}
          </Field>
          <div class="memory-pair">
            <Field label="Format">
              {control => (
                <Select
                  {...control}
                  value={format}
                  disabled={isRunning}
                  options={[
                    { value: '', label: 'Detect' },
                    ...formats.map(value => ({ value, label: FORMATS[value] ?? value })),
                  ]}
                  onChange={setFormat}
                />
              )}
            </Field>
            <TextInputField
              label="Group"
              hint="Empty: the one that the file names"
              value={group}
              isDisabled={isRunning}
              onValue={setGroup}
            />
          </div>
          {isRunning && file && (
            <TransferProgress
              done={sent}
              total={file.size}
              text={sent < file.size ? `${formatBytes(sent)} of ${formatBytes(file.size)}` : 'Storing the last part…'}
            />
          )}
        </>
      )}
    </Dialog>
  )
}

interface TransferProgressProps {
  readonly done: number
  readonly total: number
  readonly text: string
}

export const TransferProgress = ({ done, total, text }: TransferProgressProps) => (
  <div class="transfer" role="status">
    <progress max={Math.max(1, total)} value={Math.min(done, total)} aria-label="Progress" />
    <span>{text}</span>
  </div>
)

const ImportReportView = ({ report }: { readonly report: ImportSummary }) => {
  const { format, created, replaced, removed, same, entities, facts, faulty, faults } = report
  const counts = [
    [created, 'new episode'],
    [replaced, 'changed episode'],
    [removed, 'removed episode'],
    [same, 'known item'],
    [facts, 'fact'],
  ] as const
  const shown = counts.filter(([count]) => count > 0).map(([count, noun]) => plural(count, noun))
  if (entities > 0) shown.push(plural(entities, 'entity', 'entities'))
  return (
    <div role="status">
      <p>
        Imported as <strong>{FORMATS[format] ?? format}</strong>: {shown.join(', ') || 'nothing new'}.
      </p>
      {faulty > 0 && (
        <>
          <p class="memory-error">
            {formatCount(faulty)} could not be imported. Correct them and import the file again:
          </p>
          <ul class="import-faults">
            {faults.map(({ where, why }) => (
              <li key={`${where} ${why}`}>
                <strong>{where}</strong> {why}
              </li>
            ))}
            {faulty > faults.length && <li class="quiet">and {formatCount(faulty - faults.length)} more</li>}
          </ul>
        </>
      )}
    </div>
  )
}
