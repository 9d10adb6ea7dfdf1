import { useMemo } from 'preact/hooks'
import { diffHunks, diffLines } from './lines.ts'

interface DifferenceProps {
  readonly before: string
  readonly after: string
  readonly label: string
}

const SIGNS = { same: ' ', added: '+', removed: '-' } as const

/** The difference between two texts, line by line. */
export const Difference = ({ before, after, label }: DifferenceProps) => {
  const lines = useMemo(() => diffHunks(diffLines(before, after)), [before, after])
  if (lines.length === 0) return <p class="quiet">The text is the same.</p>
  return (
    <div class="config-diff mono" role="group" aria-label={label} tabIndex={0}>
      {lines.map((line, at) =>
        line ? (
          <div key={at} class={`config-diff-line config-diff-${line.kind}`}>
            <span class="config-diff-number">{line.before ?? ''}</span>
            <span class="config-diff-number">{line.after ?? ''}</span>
            <span aria-hidden="true">{SIGNS[line.kind]}</span>
            {line.kind !== 'same' && <span class="visually-hidden">{line.kind}: </span>}
            <span class="config-diff-text">{line.text}</span>
          </div>
        ) : (
          <div key={at} class="config-diff-gap">
            ⋯
          </div>
        ),
      )}
    </div>
  )
}
