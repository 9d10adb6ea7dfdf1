import { useMemo, useState } from 'preact/hooks'
import { Button } from './button.tsx'
import { CopyButton } from './copy-button.tsx'
import { formatBytes } from './format.ts'

export interface JsonTextProps {
  readonly text: string // JSON as it is on the wire; text that is no JSON is shown as it is
  readonly label: string // the name of the block
  readonly isPretty?: boolean // indented; default: true
  readonly isColoured?: boolean // default: true; false for text that is no JSON
  readonly fileName?: string | undefined // for the download of a large text
}

const COLOURED_BELOW = 20_000 // characters: each coloured word is an element
const SHOWN_BELOW = 200_000
const WHOLE_BELOW = 2_000_000 // a longer text would stop the page
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g

/** JSON as text: indented and coloured if it is small, cut with a download if it is large. */
export const JsonText = (props: JsonTextProps) => {
  const { text, label, isPretty = true, isColoured = true, fileName = 'result.json' } = props
  const [isWhole, setWhole] = useState(false)
  const shown = useMemo(() => (isPretty ? indent(text) : text), [text, isPretty])
  const isCut = !isWhole && shown.length > SHOWN_BELOW
  return (
    <div class="code-block">
      <div class="code-actions">
        <CopyButton text={shown} label={`Copy ${label}`} />
      </div>
      <pre tabIndex={0} role="group" aria-label={label}>
        {isColoured && shown.length < COLOURED_BELOW
          ? colouredJson(shown)
          : isCut
            ? shown.slice(0, SHOWN_BELOW)
            : shown}
      </pre>
      {isCut && (
        <p class="code-more">
          The first {formatBytes(SHOWN_BELOW)} of {formatBytes(shown.length)}.
          <Button icon="download" onClick={() => downloadText(shown, fileName)}>
            Download
          </Button>
          {shown.length < WHOLE_BELOW && (
            <Button kind="quiet" onClick={() => setWhole(true)}>
              Show all
            </Button>
          )}
        </p>
      )}
    </div>
  )
}

/** Indents without parsing numbers: what is shown is what was sent. */
const indent = (text: string): string => {
  if (text.length > SHOWN_BELOW) return text
  try {
    JSON.parse(text)
  } catch {
    return text
  }
  return indentJson(text)
}

const PIECES = /"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g

const indentJson = (text: string): string => {
  let [out, depth, before] = ['', 0, '']
  const line = (): string => `\n${'  '.repeat(depth)}`
  for (const [piece] of text.matchAll(PIECES)) {
    const isOpening = before === '{' || before === '['
    if (piece === '}' || piece === ']') {
      depth--
      out += isOpening ? piece : line() + piece
    } else {
      if (before === ',' || isOpening) out += line()
      out += piece === ':' ? ': ' : piece
      if (piece === '{' || piece === '[') depth++
    }
    before = piece
  }
  return out
}

/** JSON with its keys, strings, numbers and literals in colours. */
export const colouredJson = (text: string) => {
  const parts = []
  let end = 0
  for (const match of text.matchAll(TOKEN)) {
    const [whole, string, colon] = match
    if (match.index > end) parts.push(text.slice(end, match.index))
    const kind =
      string === undefined ? (/^[-\d]/.test(whole) ? 'number' : 'literal') : colon === undefined ? 'string' : 'key'
    parts.push(<span class={`json-${kind}`}>{string ?? whole}</span>, colon)
    end = match.index + whole.length
  }
  return [...parts, text.slice(end)]
}

/** Saves a text or bytes as a file of the user. */
export const downloadText = (content: string | Blob, name: string, type = 'application/json'): void => {
  const url = URL.createObjectURL(typeof content === 'string' ? new Blob([content], { type }) : content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
