import { useMemo, useState } from 'preact/hooks'
import { parseExact } from '../../../exact-json.ts'
import { Button } from '../../../parts/button.tsx'
import { CopyButton } from '../../../parts/copy-button.tsx'
import { formatBytes } from '../../../parts/format.ts'
import { downloadText } from '../../../parts/json-text.tsx'
import { JsonTree } from '../../../parts/json-tree.tsx'
import { Markdown } from '../../../parts/markdown.tsx'
import { Segments } from '../segments.tsx'
import { DataTable } from './data-table.tsx'
import { findTable } from './table-rows.ts'

export interface TextBlockProps {
  readonly text: string
  readonly label: string
  readonly mimeType?: string | undefined
}

const SHOWN = 100_000 // characters at first, and more with each press
const MOST_SHOWN = 2_000_000
const MOST_PARSED = 1_000_000
const MARKDOWN = /^(#{1,6} |[-*] |\d+\. |```|> |\|.*\|)|\*\*\S|\[[^\]\n]{1,200}\]\(|`[^`]+`/m

type TextView = 'text' | 'markdown' | 'tree' | 'table'

/** A text, also as Markdown, as a JSON tree or as a table, where it is that. Long ones are cut. */
export const TextBlock = ({ text, label, mimeType }: TextBlockProps) => {
  const json = useMemo(() => readJson(text), [text])
  const table = useMemo(() => findTable(json), [json])
  const isMarkdown = useMemo(
    () => json === undefined && text.length <= SHOWN && (mimeType === 'text/markdown' || MARKDOWN.test(text)),
    [text, mimeType, json],
  )
  const [chosen, setChosen] = useState<TextView | undefined>(undefined)
  const views: { id: TextView; label: string }[] = [
    { id: 'text', label: 'Text' },
    ...(json === undefined && text.length <= SHOWN ? [{ id: 'markdown', label: 'Markdown' } as const] : []),
    ...(json === undefined ? [] : [{ id: 'tree', label: 'Tree' } as const]),
    ...(table ? [{ id: 'table', label: 'Table' } as const] : []),
  ]
  const first: TextView = table ? 'table' : json !== undefined ? 'tree' : isMarkdown ? 'markdown' : 'text'
  const view = chosen ?? first
  return (
    <div class="text-block">
      <div class="block-head">
        <span class="explore-note">{label}</span>
        {views.length > 1 && <Segments label={`Show ${label} as`} value={view} options={views} onChange={setChosen} />}
        <CopyButton text={text} label={`Copy ${label}`} />
      </div>
      {view === 'markdown' && <Markdown text={text} />}
      {view === 'tree' && <JsonTree value={json} />}
      {view === 'table' && table && <DataTable table={table} label={label} />}
      {view === 'text' && <LongText text={text} label={label} />}
    </div>
  )
}

const readJson = (text: string): unknown => {
  if (text.length > MOST_PARSED || !/^\s*[{[]/.test(text)) return undefined
  try {
    return parseExact(text)
  } catch {
    return undefined // a text that begins like JSON
  }
}

const LongText = ({ text, label }: { readonly text: string; readonly label: string }) => {
  const [limit, setLimit] = useState(SHOWN)
  const isCut = text.length > limit
  return (
    <div class="code-block">
      <pre tabIndex={0} role="group" aria-label={label} class="plain-text">
        {isCut ? text.slice(0, limit) : text}
      </pre>
      {isCut && (
        <p class="code-more">
          The first {formatBytes(limit)} of {formatBytes(text.length)}.
          <Button icon="download" onClick={() => downloadText(text, 'result.txt', 'text/plain')}>
            Download
          </Button>
          {limit < MOST_SHOWN && (
            <Button kind="quiet" onClick={() => setLimit(limit + SHOWN)}>
              Show more
            </Button>
          )}
        </p>
      )}
    </div>
  )
}
