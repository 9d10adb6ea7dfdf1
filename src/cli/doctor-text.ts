import type { Deviation } from '../doctor/deviations.ts'
import type { AuthenticationFinding, DoctorReport, ServerFinding, TransportFinding } from '../doctor/report.ts'
import { columns } from './usage.ts'

/** The report of `dragoman doctor` as text. */
export const doctorText = (report: DoctorReport): string => {
  const { target, transports, server, authentication, failure, hint, stderr, deviations } = report
  const rows: (readonly [string, string])[] = [
    ...transports.map(transportRow),
    ...(server ? serverRows(server) : []),
    ...(authentication ? loginRows(authentication) : []),
    ...(failure !== undefined && transports.length === 0 ? [['failure', failure] as const] : []),
    ...(stderr === undefined ? [] : [['stderr', stderr] as const]),
    ...(hint === undefined ? [] : [['hint', hint] as const]),
  ]
  const parts = [
    target,
    columns(rows),
    ...(deviations.length > 0 ? [deviationText(deviations)] : []),
    VERDICTS[report.verdict](report),
  ]
  return `${parts.join('\n\n')}\n`
}

const transportRow = ({ transport, revisions, reason }: TransportFinding): readonly [string, string] => [
  transport,
  revisions.length > 0 ? revisions.join(', ') : `no: ${reason ?? 'no answer'}`,
]

const serverRows = (server: ServerFinding): (readonly [string, string])[] => {
  const { name, version, capabilities, counts, sessions, handshakeMs, latencyMs, revision, transport } = server
  return [
    ['server', `${name ?? '(no name)'} ${version ?? ''}`.trim()],
    [
      'examined',
      `${transport}, ${revision}${sessions === undefined ? '' : sessions ? ', with sessions' : ', without sessions'}`,
    ],
    ['capabilities', capabilityText(capabilities)],
    [
      'lists',
      Object.entries(counts)
        .map(([list, count]) => counted(count, LIST_NAMES[list] ?? list))
        .join(', ') || 'none',
    ],
    ['handshake', `${milliseconds(handshakeMs)}`],
    ['latency', latencyMs === undefined ? 'not measured' : `${milliseconds(latencyMs)} (median of 5)`],
  ]
}

const LIST_NAMES: Readonly<Record<string, string>> = {
  tools: 'tool',
  prompts: 'prompt',
  resources: 'resource',
  resourceTemplates: 'resource template',
}

/** `tools (listChanged), logging` */
const capabilityText = (names: readonly string[]): string => {
  const featuresOf = (name: string) =>
    names.filter(other => other.startsWith(`${name}.`)).map(other => other.slice(name.length + 1))
  const texts = names
    .filter(name => !names.some(other => name.startsWith(`${other}.`)))
    .map(name => (featuresOf(name).length > 0 ? `${name} (${featuresOf(name).join(', ')})` : name))
  return texts.join(', ') || 'none'
}

const milliseconds = (ms: number): string => `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`

const loginRows = ({
  status,
  challenge,
  metadata,
  authorizationServers,
  scopes,
}: AuthenticationFinding): (readonly [string, string])[] => [
  ['answer', String(status)],
  ['challenge', challenge ?? 'none'],
  ...(metadata === undefined ? [] : [['metadata', metadata] as const]),
  ...(authorizationServers?.length ? [['log in at', authorizationServers.join(', ')] as const] : []),
  ...(scopes?.length ? [['scopes', scopes.join(', ')] as const] : []),
]

const deviationText = (deviations: readonly Deviation[]): string =>
  [...new Set(deviations.map(({ rule }) => rule))]
    .map(rule => {
      const same = deviations.filter(deviation => deviation.rule === rule)
      const [{ level, text, link }] = same as [Deviation]
      const seen = same.map(({ seen, where }) => `  ${seen} (${where.join('; ')})`)
      return [`${level.toUpperCase()}: ${text}`, ...seen, `  ${link}`].join('\n')
    })
    .join('\n')

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

const VERDICTS: Readonly<Record<DoctorReport['verdict'], (report: DoctorReport) => string>> = {
  conforms: () => 'It works, and no deviation from the specification was found.',
  deviates: ({ deviations }) => {
    const musts = deviations.filter(({ level }) => level === 'must').length
    return `It works, with ${counted(deviations.length, 'deviation')} from the specification, ${musts} of them from a MUST.`
  },
  'login-required': ({ authentication }) =>
    authentication?.metadata === undefined
      ? 'It wants credentials: pass --token or --header to examine more.'
      : 'It wants a login. In the configuration of the gateway its URL is enough: each user logs in once, also with "dragoman login NAME".\nPass --token or --header to examine more.',
  'not-mcp': () => 'No MCP server was found there.',
  unreachable: () => 'It could not be reached.',
}
