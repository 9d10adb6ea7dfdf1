import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { META } from '../../../protocol/meta.ts'
import { stringifyExact } from '../../exact-json.ts'
import { isObject, type JsonObject } from '../../mcp/messages.ts'
import { Badge } from '../../parts/badge.tsx'
import { Icon } from '../../parts/icon.tsx'
import { JsonText } from '../../parts/json-text.tsx'
import { Markdown } from '../../parts/markdown.tsx'
import type { ExploreItem } from './kinds.ts'

const HINTS: readonly { readonly name: string; readonly on: string; readonly off?: string; readonly kind?: 'warn' }[] =
  [
    { name: 'readOnlyHint', on: 'read-only' },
    { name: 'destructiveHint', on: 'destructive', off: 'not destructive', kind: 'warn' },
    { name: 'idempotentHint', on: 'idempotent' },
    { name: 'openWorldHint', on: 'open world', off: 'closed world' },
  ]

/** The title, the hints and the description of an item. */
export const ItemHead = ({ item }: { readonly item: ExploreItem }) => {
  const { title, description, definition } = item
  return (
    <header class="item-head">
      {title !== undefined && title !== item.name && <p class="item-title">{title}</p>}
      <Hints definition={definition} />
      {description !== undefined && <Markdown text={description} />}
    </header>
  )
}

const Hints = ({ definition }: { readonly definition: JsonObject }) => {
  const annotations = isObject(definition.annotations) ? definition.annotations : {}
  const meta = isObject(definition._meta) ? definition._meta : {}
  const origin = meta[META.origin]
  const hints = HINTS.flatMap(({ name, on, off, kind }) => {
    const value = annotations[name]
    if (value === true) return [{ text: on, kind }]
    return value === false && off !== undefined ? [{ text: off, kind: undefined }] : []
  })
  const facts = ['mimeType', 'size'].flatMap(name => (definition[name] === undefined ? [] : [String(definition[name])]))
  if (hints.length === 0 && !isObject(origin) && facts.length === 0) return null
  return (
    <p class="item-hints">
      {isObject(origin) && (
        <Badge kind="accent" title="The server, and the name there">
          {String(origin.server)}/{String(origin.name)}
        </Badge>
      )}
      {hints.map(({ text, kind }) => (
        <Badge key={text} kind={kind ?? 'neutral'} title="A hint of the server; it may be wrong">
          {text}
        </Badge>
      ))}
      {facts.map(fact => (
        <Badge key={fact}>{fact}</Badge>
      ))}
    </p>
  )
}

interface FoldProps {
  readonly title: string
  readonly children: ComponentChildren
}

/** A part that is closed at first, and rendered when it is opened. */
export const Fold = ({ title, children }: FoldProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="fold" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Icon name="chevron-right" />
        {title}
      </summary>
      {isOpen && <div class="fold-body">{children}</div>}
    </details>
  )
}

/** The schemas and the whole definition, as the server sent them. */
export const Definitions = ({ item }: { readonly item: ExploreItem }) => {
  const { inputSchema, outputSchema } = item.definition
  return (
    <div class="definitions">
      {inputSchema !== undefined && (
        <Fold title="Input schema">
          <Definition value={inputSchema} label="the input schema" />
        </Fold>
      )}
      {outputSchema !== undefined && (
        <Fold title="Output schema">
          <Definition value={outputSchema} label="the output schema" />
        </Fold>
      )}
      <Fold title="Definition">
        <Definition value={item.definition} label="the definition" />
      </Fold>
    </div>
  )
}

const Definition = ({ value, label }: { readonly value: unknown; readonly label: string }) => (
  <JsonText text={stringifyExact(value)} label={label} />
)
