import { useEffect, useRef, useState } from 'preact/hooks'
import type { MemoryStats } from '../../../protocol/memory-views.ts'
import { messageOf, send } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { formatBytes, formatCount, plural } from '../../parts/format.ts'
import { downloadText } from '../../parts/json-text.tsx'
import { TransferProgress } from './import-dialog.tsx'
import { type MemoryPlace, memoryQuery } from './memory-address.ts'

export interface ExportDialogProps {
  readonly place: MemoryPlace
  readonly groups: MemoryStats['groups']
  readonly onClose: () => void
}

interface ReadSoFar {
  readonly lines: number
  readonly bytes: number
}

const NEWLINE = 10

/** Reads a response in pieces and tells how far it is. */
const readPieces = async (response: Response, onRead: (read: ReadSoFar) => void): Promise<Blob> => {
  const pieces: Uint8Array<ArrayBuffer>[] = []
  const read = { lines: 0, bytes: 0 }
  const reader = response.body?.getReader()
  for (;;) {
    const next = await reader?.read()
    if (!next || next.done) break
    pieces.push(next.value)
    read.bytes += next.value.length
    for (const byte of next.value) if (byte === NEWLINE) read.lines++
    onRead({ ...read })
  }
  return new Blob(pieces, { type: 'application/x-ndjson' })
}

/** Downloads a memory, or one group of it, as JSON lines that can be imported again. */
export const ExportDialog = ({ place, groups, onClose }: ExportDialogProps) => {
  const [read, setRead] = useState<ReadSoFar | undefined>()
  const [isDone, setDone] = useState(false)
  const [error, setError] = useState<string | undefined>()
  const abort = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => abort.current?.abort(), [])
  const chosen = groups.filter(({ group }) => place.group === undefined || group === place.group)
  const total = chosen.reduce((sum, { episodes, entities, facts }) => sum + episodes + entities + facts, 1)
  const name = `memory${place.group === undefined ? '' : `-${place.group}`}.jsonl`

  const start = async (): Promise<void> => {
    abort.current = new AbortController()
    setError(undefined)
    setRead({ lines: 0, bytes: 0 })
    try {
      const path = `admin/memory/export${memoryQuery({ ...place, asOf: undefined })}`
      const response = await send('GET', path, undefined, { signal: abort.current.signal })
      downloadText(await readPieces(response, setRead), name, 'application/x-ndjson')
      setDone(true)
    } catch (thrown) {
      setRead(undefined)
      if (!abort.current.signal.aborted) setError(messageOf(thrown))
    }
  }
  const isRunning = read !== undefined && !isDone
  return (
    <Dialog
      title="Export"
      onClose={onClose}
      onSubmit={() => void (isDone ? onClose() : start())}
      footer={
        <>
          {!isDone && (
            <Button onClick={isRunning ? () => abort.current?.abort() : onClose}>
              {isRunning ? 'Stop' : 'Cancel'}
            </Button>
          )}
          <Button type="submit" kind="primary" isBusy={isRunning}>
            {isDone ? 'Close' : 'Export'}
          </Button>
        </>
      }
    >
      <p>
        {place.group === undefined ? 'All groups' : `The group ${place.group}`} as JSON lines in <code>{name}</code>:
        about {plural(total, 'line')}. It can be imported again, here or with <code>dragoman memory import</code>.
      </p>
      {error !== undefined && (
        <p class="memory-error" role="alert">
          {error}
        </p>
      )}
      {read && (
        <TransferProgress
          done={isDone ? total : read.lines}
          total={total}
          text={`${formatCount(read.lines)} lines, ${formatBytes(read.bytes)}`}
        />
      )}
    </Dialog>
  )
}
