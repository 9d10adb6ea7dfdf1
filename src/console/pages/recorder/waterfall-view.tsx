import { useState } from 'preact/hooks'
import { formatDuration } from '../../parts/format.ts'
import type { WaitingFor, Waterfall, WaterfallBar, WaterfallRow } from './waterfall.ts'

const NAMES: Readonly<Record<WaitingFor, string>> = { gateway: 'Gateway', server: 'Server', client: 'Client' }
const TITLES: Readonly<Record<WaitingFor, string>> = {
  gateway: 'Translation, and waiting for a process to start, for a session to open, or for its turn',
  server: 'From a request to its answer, as the gateway saw it',
  client: 'While a question was open at the client',
}
const ORDER: readonly WaitingFor[] = ['gateway', 'server', 'client']
const SHOWN_ROWS = 12

const exact = (ms: number): string => `${ms.toLocaleString('en', { maximumFractionDigits: 3 })} ms`

/** When whom was waited for: a table with a bar in each row. */
export const WaterfallView = ({ waterfall }: { readonly waterfall: Waterfall }) => {
  const { rows, totalMs, sums, ticks } = waterfall
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? rows : rows.slice(0, SHOWN_ROWS)
  const left = (ms: number): string => `${totalMs > 0 ? (ms / totalMs) * 100 : 0}%`
  return (
    <section class="rec-waterfall" aria-label="Timings">
      <ul class="rec-legend">
        {ORDER.map(who => (
          <li key={who} title={TITLES[who]}>
            <span class={`rec-key rec-${who}`} aria-hidden="true" />
            {NAMES[who]} <span class="number">{formatDuration(sums[who])}</span>
          </li>
        ))}
      </ul>
      <table>
        <caption class="visually-hidden">Each request, question and notification with its times</caption>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col" class="number">
              Start
            </th>
            <th scope="col" class="number">
              Time
            </th>
            <th scope="col" class="rec-scale">
              <span class="visually-hidden">Chart</span>
              {ticks.map(ms => (
                <span key={ms} style={{ left: left(ms) }} aria-hidden="true">
                  {ms === 0 ? '0' : formatDuration(ms)}
                </span>
              ))}
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map(row => (
            <tr key={row.id} tabIndex={0} title={describe(row)}>
              <th scope="row" class="truncate">
                {row.label}
                {row.detail !== undefined && <span class="quiet"> {row.detail}</span>}
              </th>
              <td class="number">{formatDuration(row.fromMs)}</td>
              <td class="number">{timeText(row)}</td>
              <td>
                <div class="rec-track">
                  {ticks.slice(1).map(ms => (
                    <span key={ms} class="rec-tick" style={{ left: left(ms) }} />
                  ))}
                  {row.bars.map(bar => (
                    <span
                      key={bar.fromMs}
                      class={`rec-span rec-${bar.who}`}
                      style={{ left: left(bar.fromMs), width: left(bar.toMs - bar.fromMs) }}
                    />
                  ))}
                  {row.marks.map((ms, at) => (
                    <span key={at} class="rec-mark" style={{ left: left(ms) }} />
                  ))}
                  <span class="visually-hidden">{describe(row)}</span>
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown.length && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          {rows.length - shown.length} more
        </button>
      )}
    </section>
  )
}

const timeText = ({ isOpen, marks, fromMs, toMs }: WaterfallRow): string => {
  if (marks.length === 1) return '–'
  return isOpen ? 'open' : formatDuration(toMs - fromMs)
}

const timesOf = (bars: readonly WaterfallBar[], who: WaitingFor): number =>
  bars.filter(bar => bar.who === who).reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0)

/** The exact figures of a row. */
const describe = ({ label, detail, fromMs, toMs, bars, marks, isOpen }: WaterfallRow): string => {
  const name = detail === undefined ? label : `${label} (${detail})`
  if (marks.length > 0) return `${name} at ${marks.slice(0, 8).map(exact).join(', ')}${marks.length > 8 ? ' …' : ''}`
  const parts = ORDER.filter(who => timesOf(bars, who) > 0).map(
    who => `${NAMES[who].toLowerCase()} ${exact(timesOf(bars, who))}`,
  )
  const end = isOpen ? 'not ended in this exchange' : `to ${exact(toMs)}`
  return `${name} from ${exact(fromMs)} ${end}${parts.length > 0 ? `: ${parts.join(', ')}` : ''}`
}
