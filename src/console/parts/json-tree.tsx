import { useState } from 'preact/hooks'
import { ExactNumber } from '../exact-json.ts'
import { plural } from './format.ts'
import { Icon } from './icon.tsx'

export interface JsonTreeProps {
  readonly value: unknown // as JSON.parse or parseExact gives it
  readonly name?: string | undefined
  readonly openDepth?: number // levels that are open at first
}

const BATCH = 100
const LONG_TEXT = 500

/** JSON as a tree, of which only open levels are rendered. */
export const JsonTree = ({ value, name, openDepth = 2 }: JsonTreeProps) => (
  <ul class="json-tree">
    <JsonNode name={name} value={value} depth={openDepth} />
  </ul>
)

interface JsonNodeProps {
  readonly name: string | undefined
  readonly value: unknown
  readonly depth: number // levels below that are open at first
}

const JsonNode = ({ name, value, depth }: JsonNodeProps) => {
  const isBranch =
    typeof value === 'object' && value !== null && !(value instanceof ExactNumber) && Object.keys(value).length > 0
  return isBranch ? (
    <JsonBranch name={name} value={value} depth={depth} />
  ) : (
    <li>
      <span class="json-indent" />
      <JsonName name={name} />
      <JsonLeaf value={value} />
    </li>
  )
}

const JsonName = ({ name }: { readonly name: string | undefined }) =>
  name === undefined ? null : (
    <>
      <span class="json-key">{name}</span>
      <span class="json-mark">: </span>
    </>
  )

const JsonBranch = ({ name, value, depth }: JsonNodeProps & { readonly value: object }) => {
  const [isOpen, setOpen] = useState(depth > 0)
  const [limit, setLimit] = useState(BATCH)
  const isArray = Array.isArray(value)
  const entries = isOpen ? Object.entries(value) : []
  const count = Object.keys(value).length
  const summary = isArray ? `[ ${plural(count, 'item')} ]` : `{ ${plural(count, 'member')} }`
  return (
    <li>
      <button type="button" class="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} />
        <JsonName name={name} />
        <span class="json-summary">{summary}</span>
      </button>
      {isOpen && (
        <ul>
          {entries.slice(0, limit).map(([key, each]) => (
            <JsonNode key={key} name={key} value={each} depth={depth - 1} />
          ))}
          {entries.length > limit && (
            <li>
              <button type="button" class="link" onClick={() => setLimit(limit + 10 * BATCH)}>
                Show {plural(Math.min(10 * BATCH, entries.length - limit), 'more', 'more')} of{' '}
                {plural(count, 'entry', 'entries')}
              </button>
            </li>
          )}
        </ul>
      )}
    </li>
  )
}

const KINDS: Readonly<Record<string, string>> = { string: 'string', number: 'number', bigint: 'number' }

const JsonLeaf = ({ value }: { readonly value: unknown }) => {
  const [isWhole, setWhole] = useState(false)
  const isExact = value instanceof ExactNumber
  const text = isExact || typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? 'undefined')
  const isCut = !isWhole && text.length > LONG_TEXT
  return (
    <>
      <span class={`json-${isExact ? 'number' : (KINDS[typeof value] ?? 'literal')}`}>
        {isCut ? `${text.slice(0, LONG_TEXT)}…` : text}
      </span>
      {isCut && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          {' '}
          Show all {plural(text.length, 'character')}
        </button>
      )}
    </>
  )
}
