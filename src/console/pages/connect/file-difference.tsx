import type { ClientFileLine } from '../../../admin/api/clients.ts'
import { plural } from '../../parts/format.ts'

const SIGNS = { same: ' ', added: '+', removed: '−' } as const
const WORDS = { same: '', added: 'added: ', removed: 'removed: ' } as const

/** The lines of a file that a change adds and removes. */
export const FileDifference = ({
  lines,
  label,
}: {
  readonly lines: readonly ClientFileLine[]
  readonly label: string
}) => (
  <div class="connect-file-difference" role="group" aria-label={label} tabIndex={0}>
    {lines.map((line, at) =>
      line.kind === 'gap' ? (
        <div key={at} class="connect-difference-gap">
          {plural(line.lines, 'unchanged line')}
        </div>
      ) : (
        <div key={at} class={`connect-difference-line connect-difference-${line.kind}`}>
          <span aria-hidden="true">{SIGNS[line.kind]}</span>
          <span class="visually-hidden">{WORDS[line.kind]}</span>
          <code>{line.text}</code>
        </div>
      ),
    )}
  </div>
)
