import type { GatewayStatus, StateStatus } from '../../../protocol/status.ts'
import { formatAbsolute, formatAge, formatBytes, formatCount } from '../../parts/format.ts'
import { clock } from '../../parts/quantities.tsx'

interface Total {
  readonly name: string
  readonly value: string
  readonly title: string
  readonly tone?: 'warn' | 'error' | undefined
}

const ENGINES = { memory: 'Memory', sqlite: 'SQLite', postgres: 'PostgreSQL' } as const

const storeTotal = ({ engine, state, reason }: StateStatus): Total => ({
  name: 'Store',
  value: state === 'ok' ? ENGINES[engine] : state === 'away' ? 'Away' : 'Memory only',
  title: reason ?? `Sessions and events are kept in ${ENGINES[engine]}`,
  ...(state !== 'ok' && { tone: state === 'away' ? 'error' : 'warn' }),
})

const totalsOf = (status: GatewayStatus, now: number): readonly Total[] => {
  const { sessions, channels, streams, calls, parkedCalls, tasks = 0, memoryBytes, startedAt, state } = status
  return [
    { name: 'Sessions', value: formatCount(sessions), title: 'Open sessions of clients' },
    { name: 'Channels', value: formatCount(channels), title: 'Open channels of HTTP+SSE clients' },
    { name: 'Streams', value: formatCount(streams), title: 'Open event streams' },
    { name: 'In progress', value: formatCount(calls), title: 'Requests of clients that have not been answered' },
    {
      name: 'Tasks',
      value: formatCount(tasks),
      title: 'Calls that the gateway runs as tasks; clients fetch their results',
    },
    { name: 'Parked', value: formatCount(parkedCalls), title: 'Calls that wait for an answer of their user' },
    { name: 'Memory', value: formatBytes(memoryBytes), title: 'Of the gateway, without the processes of servers' },
    {
      name: 'Uptime',
      value: formatAge(Math.max(1000, now - startedAt)),
      title: `Process ${status.pid}, started ${formatAbsolute(startedAt)}`,
    },
    ...(state ? [storeTotal(state)] : []),
    {
      name: 'Replicas',
      value: formatCount(Math.max(1, state?.replicas.length ?? 1)),
      title: state?.replicas.map(({ name, address }) => `${name} ${address}`).join('\n') ?? 'This one',
    },
  ]
}

/** The figures of the whole gateway, in one line. */
export const TotalsStrip = ({ status }: { readonly status: GatewayStatus }) => (
  <dl class="totals">
    {totalsOf(status, clock.value).map(({ name, value, title, tone }) => (
      <div key={name} title={title}>
        <dt>{name}</dt>
        <dd class={tone && `tone-${tone}`}>{value}</dd>
      </div>
    ))}
  </dl>
)
