import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { plural } from '../../parts/format.ts'
import { colouredJson } from '../../parts/json-text.tsx'
import type { MessageFlow } from './align.ts'
import type { NumberedHeader, PairComparison } from './compare-pair.ts'
import type { DiffLine, JsonChange, LineSide } from './diff.ts'
import { differingPart } from './differing-part.ts'
import { type FoldedPart, foldLines } from './fold-lines.ts'

const SIGNS = { added: '+', removed: '−', changed: '~', moved: '⇄' } as const
type MarkKind = keyof typeof SIGNS

export interface DiffViewProps {
  readonly comparison: PairComparison
  readonly flow: MessageFlow
  readonly active: number | undefined // the explanation whose lines are marked
}

const MOST_LINES = 400

/** Both texts of a pair beside each other, line by line: what the gateway changed is marked on both sides. */
export const DiffView = ({ comparison, flow, active }: DiffViewProps) => {
  const { diff, numbers, headers } = comparison
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set())
  const [isWhole, setWhole] = useState(false)
  const folded = useMemo(() => foldLines(diff.lines, opened), [diff, opened])
  const shown = isWhole ? folded : folded.slice(0, MOST_LINES)
  return (
    <div class="rec-diff" role="group" aria-label="Comparison" tabIndex={0}>
      {headers
        .filter(({ isChanged }) => isChanged)
        .map(header => (
          <HeaderRow key={header.name} header={header} flow={flow} active={active} />
        ))}
      {shown.map((part, at) =>
        part.kind === 'fold' ? (
          <button
            key={`fold ${part.from}`}
            type="button"
            class="rec-fold"
            onClick={() => setOpened(new Set([...opened, part.from]))}
          >
            {plural(part.count, 'equal line')}
          </button>
        ) : (
          <DiffRow
            key={part.index}
            line={part.line}
            change={part.line.change === undefined ? undefined : diff.changes[part.line.change]}
            number={numberOf(part, numbers)}
            isFirst={numberOf(shown[at - 1], numbers) !== numberOf(part, numbers)}
            flow={flow}
            active={active}
          />
        ),
      )}
      {folded.length > shown.length && (
        <button type="button" class="rec-fold" onClick={() => setWhole(true)}>
          {plural(folded.length - shown.length, 'more line')}
        </button>
      )}
    </div>
  )
}

/** The number of the explanation of a line. */
const numberOf = (part: FoldedPart | undefined, numbers: readonly number[]): number | undefined =>
  part?.kind === 'line' && part.line.change !== undefined ? numbers[part.line.change] : undefined

interface DiffRowProps {
  readonly line: DiffLine
  readonly change: JsonChange | undefined
  readonly number: number | undefined
  readonly isFirst?: boolean // of its change: shows the number
  readonly isPlain?: boolean // no JSON: without colours
  readonly flow: MessageFlow
  readonly active: number | undefined
}

const DiffRow = ({ line, change, number, isFirst = true, isPlain = false, flow, active }: DiffRowProps) => {
  const { before, after } = line
  const [client, server] = flow === 'toServer' ? [before, after] : [after, before]
  const isActive = number !== undefined && number === active
  const kind = change?.kind
  const other = kind === 'changed' ? { client: server?.text, server: client?.text } : {}
  return (
    <div class={`rec-line${isActive ? ' rec-active' : ''}${kind === undefined ? ' rec-same' : ''}`}>
      <DiffCell
        isPlain={isPlain}
        name="client"
        side={client}
        kind={client && kind}
        number={isFirst ? number : undefined}
        other={other.client}
      />
      <DiffCell
        isPlain={isPlain}
        name="server"
        side={server}
        kind={server && kind}
        number={isFirst ? number : undefined}
        other={other.server}
      />
    </div>
  )
}

interface DiffCellProps {
  readonly isPlain: boolean
  readonly name: 'client' | 'server'
  readonly side: LineSide | undefined
  readonly kind: MarkKind | undefined
  readonly number: number | undefined
  readonly other: string | undefined // the changed text of the other side
}

const DiffCell = ({ isPlain, name, side, kind, number, other }: DiffCellProps) => (
  <div class={`rec-cell${kind ? ` rec-${kind}` : ''}${side ? '' : ' rec-none'}`}>
    {kind && (
      <span class="rec-sign">
        <span aria-hidden="true">{SIGNS[kind]}</span>
        <span class="rec-whose" aria-hidden="true">
          {name.slice(0, 1).toUpperCase()}
        </span>
        {number !== undefined && (
          <span class="rec-ref">
            <span class="visually-hidden">{kind}, explanation </span>
            {number}
          </span>
        )}
      </span>
    )}
    {side && (
      <code style={{ paddingLeft: `${side.depth * 2}ch` }}>
        <LineText text={side.text} other={other} show={isPlain ? String : colouredJson} />
      </code>
    )}
  </div>
)

interface LineTextProps {
  readonly text: string
  readonly other: string | undefined
  readonly show: (text: string) => ComponentChildren
}

/** A text; if the other side has another, with the part that differs emphasised. */
const LineText = ({ text, other, show }: LineTextProps) => {
  if (other === undefined) return <>{show(text)}</>
  const [before, middle, after] = differingPart(text, other)
  return (
    <>
      {show(before)}
      {middle !== '' && <mark>{middle}</mark>}
      {after}
    </>
  )
}

interface HeaderRowProps {
  readonly header: NumberedHeader
  readonly flow: MessageFlow
  readonly active: number | undefined
}

/** A header that differs, as a line before the text. */
const HeaderRow = ({ header, flow, active }: HeaderRowProps) => {
  const { name, before, after, number } = header
  const kind: MarkKind = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'
  const sideOf = (value: string | undefined): LineSide | undefined =>
    value === undefined ? undefined : { depth: 0, text: `${name}: ${value}` }
  const line = { before: sideOf(before), after: sideOf(after) }
  const change: JsonChange = { kind, path: [] }
  return <DiffRow line={line} change={change} number={number} isPlain flow={flow} active={active} />
}
