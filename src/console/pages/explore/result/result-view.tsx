import { useMemo } from 'preact/hooks'
import { isSameJson, parseExact } from '../../../exact-json.ts'
import { isObject, type JsonObject } from '../../../mcp/messages.ts'
import { Badge } from '../../../parts/badge.tsx'
import { JsonTree } from '../../../parts/json-tree.tsx'
import { Fold } from '../item-head.tsx'
import { ContentBlock, ResourceContents } from './content-block.tsx'
import { DataTable } from './data-table.tsx'
import { findTable } from './table-rows.ts'

export interface ResultViewProps {
  readonly target: string // where links to resources lead
  readonly result: JsonObject
}

const MOST_BLOCKS = 100

/** A result as its kind is read: content, messages, or contents of a resource. */
export const ResultView = ({ target, result }: ResultViewProps) => {
  const { content, messages, contents, structuredContent, _meta, isError, description } = result
  const known = [content, messages, contents].some(Array.isArray) || structuredContent !== undefined
  return (
    <div class="result">
      {isError === true && (
        <p>
          <Badge kind="error" icon="warning">
            the tool reported an error
          </Badge>
        </p>
      )}
      {typeof description === 'string' && <p class="quiet">{description}</p>}
      {structuredContent !== undefined && <Structured value={structuredContent} />}
      <Blocks
        items={content}
        render={(block, at) =>
          repeats(block, structuredContent) ? (
            <Fold title={`Content ${at + 1}: the same as text`}>
              <ContentBlock block={block} target={target} label={`Content ${at + 1}`} />
            </Fold>
          ) : (
            <ContentBlock block={block} target={target} label={`Content ${at + 1}`} />
          )
        }
      />
      <Blocks
        items={messages}
        render={(message, at) => (
          <div class="message">
            <Badge>{isObject(message) && typeof message.role === 'string' ? message.role : 'no role'}</Badge>
            <ContentBlock
              block={isObject(message) ? message.content : message}
              target={target}
              label={`Message ${at + 1}`}
            />
          </div>
        )}
      />
      <Blocks
        items={contents}
        render={each =>
          isObject(each) ? <ResourceContents contents={each} target={target} /> : <JsonTree value={each} />
        }
      />
      {Array.isArray(content) && content.length === 0 && structuredContent === undefined && (
        <p class="explore-note">The result has no content.</p>
      )}
      {!known && <JsonTree value={result} />}
      {isObject(_meta) && Object.keys(_meta).length > 0 && <JsonTree value={_meta} name="_meta" openDepth={0} />}
    </div>
  )
}

interface BlocksProps {
  readonly items: unknown
  readonly render: (item: unknown, at: number) => preact.ComponentChildren
}

const Blocks = ({ items, render }: BlocksProps) => {
  if (!Array.isArray(items)) return null
  return (
    <>
      {items.slice(0, MOST_BLOCKS).map((item, at) => (
        <div key={at}>{render(item, at)}</div>
      ))}
      {items.length > MOST_BLOCKS && (
        <p class="explore-note">The other {items.length - MOST_BLOCKS} blocks are in the raw message.</p>
      )}
    </>
  )
}

const LONGEST_COMPARED = 200_000

/** Whether a text is the structured content once more, for clients that do not know it. */
const repeats = (block: unknown, structured: unknown): boolean => {
  if (structured === undefined || !isObject(block) || typeof block.text !== 'string') return false
  if (block.text.length > LONGEST_COMPARED) return false
  try {
    return isSameJson(parseExact(block.text), structured)
  } catch {
    return false // a text of its own
  }
}

const Structured = ({ value }: { readonly value: unknown }) => {
  const table = useMemo(() => findTable(value), [value])
  return (
    <section class="structured" aria-label="Structured content">
      <p class="explore-note">Structured content</p>
      {table && <DataTable table={table} label="Structured content" />}
      <JsonTree value={value} openDepth={table ? 1 : 3} />
    </section>
  )
}
