import { MODERN } from '../../../protocol/revisions.ts'
import type { ReadMessage } from './align.ts'
import { docsReference, type ExplainContext, type Explanation, specReference, UNEXPLAINED } from './explain.ts'

/** A header of a message, and what it is on the other side. */
export interface HeaderChange {
  readonly name: string
  readonly before?: string | undefined
  readonly after?: string | undefined
  readonly isChanged: boolean
}

type RecordedHeaders = ReadMessage['headers']

const STATUS = ':status'

/** The HTTP status of the response that a message came in; undefined if it came another way. */
export const statusOf = ({ headers }: Pick<ReadMessage, 'headers'>): string | undefined =>
  headers?.find(([name]) => name === STATUS)?.[1]

/** Each connection has an HTTP response of its own: only the headers of requests are compared. */
const comparable = (headers: RecordedHeaders = []): NonNullable<RecordedHeaders> =>
  headers.some(([name]) => name === STATUS) ? [] : headers

/** The headers of both messages, those of the first one first. */
export const compareHeaders = (sent?: RecordedHeaders, received?: RecordedHeaders): readonly HeaderChange[] => {
  const [before, after] = [comparable(sent), comparable(received)]
  const later = new Map(after.map(([name, value]) => [name.toLowerCase(), value]))
  const known = new Set(before.map(([name]) => name.toLowerCase()))
  const rest = after.filter(([name]) => !known.has(name.toLowerCase()))
  return [
    ...before.map(([name, value]) => {
      const now = later.get(name.toLowerCase())
      return { name: name.toLowerCase(), before: value, after: now, isChanged: now !== value }
    }),
    ...rest.map(([name, value]) => ({ name: name.toLowerCase(), after: value, isChanged: true })),
  ]
}

interface HeaderRule {
  readonly name: RegExp
  readonly text: string
  readonly reference?: Explanation['reference']
}

const TRANSPORT = specReference('basic/transports/streamable-http', 'Streamable HTTP')

const REMOVED_ON_PIPE: Explanation = {
  text: 'The server is on stdio, or in the process of the gateway: messages have no headers there.',
  reference: specReference('basic/transports/stdio', 'stdio'),
}
const ADDED_FROM_PIPE: Explanation = {
  text: 'The client sends no such header; this server needs it.',
  reference: TRANSPORT,
}

const RULES: readonly HeaderRule[] = [
  {
    name: /^mcp-session-id$/,
    text: `Sessions exist before ${MODERN} only, and each connection of the gateway has its own.`,
    reference: docsReference('eras.md'),
  },
  {
    name: /^mcp-protocol-version$/,
    text: 'Each side speaks its own revision.',
    reference: specReference('basic/versioning', 'versioning'),
  },
  {
    name: /^mcp-(method|name)$/,
    text: `${MODERN} repeats the method and the name in headers. The name is the one that this side knows.`,
    reference: TRANSPORT,
  },
  {
    name: /^mcp-param-/,
    text: 'The schema of the tool asks for this argument in a header; the gateway writes it for clients that cannot.',
    reference: TRANSPORT,
  },
  {
    name: /^last-event-id$/,
    text: 'The client resumes a stream of the gateway; streams of servers are resumed by the gateway.',
    reference: docsReference('eras.md'),
  },
  {
    name: /^(traceparent|tracestate|baggage)$/,
    text: 'The gateway continues the trace: its own span is the parent of what the server does.',
    reference: docsReference('observability.md'),
  },
]

const PIPES: ReadonlySet<string | undefined> = new Set(['stdio', 'embedded'])

/** Why a header differs. */
export const explainHeader = ({ name, before, after }: HeaderChange, { from, to }: ExplainContext): Explanation => {
  if (after === undefined && PIPES.has(to.dialect)) return REMOVED_ON_PIPE
  const rule = RULES.find(each => each.name.test(name))
  if (rule) return { text: rule.text, reference: rule.reference }
  return before === undefined && PIPES.has(from.dialect) ? ADDED_FROM_PIPE : UNEXPLAINED
}
