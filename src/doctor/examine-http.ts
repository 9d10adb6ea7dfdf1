import { isModern, isRevision, REVISIONS, type Revision } from '../protocol/revisions.ts'
import type { Json } from '../wire/json/json.ts'
import { examineAuthentication } from './authentication.ts'
import { checkServer } from './check-server.ts'
import type { Deviations } from './deviations.ts'
import { describeReply } from './examined-server.ts'
import type { PostAnswer, ProbeTarget } from './http-post.ts'
import { HttpFailure, sendHttp } from './http-send.ts'
import { openHttpSse } from './http-sse.ts'
import type { AuthenticationFinding, ServerFinding, TransportFinding } from './report.ts'
import { openStateless } from './stateless.ts'
import { openStreamable } from './streamable.ts'

/** What was found at one address or in one program. */
export interface Examination {
  readonly transports: readonly TransportFinding[]
  readonly server?: ServerFinding | undefined
  readonly authentication?: AuthenticationFinding | undefined
  readonly failure?: string | undefined // why nothing works
  readonly isUnreachable?: boolean
  readonly stderr?: string | undefined
}

export const LEGACY_NEWEST_FIRST: readonly Revision[] = REVISIONS.filter(revision => !isModern(revision)).reverse()

const UNKNOWN_REVISION = '1999-01-01'

/** Tries every transport and revision at a URL. */
export const examineHttp = async (
  target: ProbeTarget,
  identity: Json,
  deviations: Deviations,
  onStep: (step: string) => void,
): Promise<Examination> => {
  onStep('Streamable HTTP, 2026-07-28')
  const modern = await openStateless(target, identity, deviations)
  if (isLogin(modern.answer)) return loginRequired(target, modern.answer, deviations)
  const spoken = new Set<string>(modern.examined ? [modern.examined.revision] : [])
  let server = modern.examined && (await checkServer(modern.examined, deviations))
  const legacy = await examineStreamable(target, identity, deviations, onStep, server === undefined)
  for (const revision of legacy.revisions) spoken.add(revision)
  server ??= legacy.server
  if (legacy.login) return loginRequired(target, legacy.login, deviations)
  onStep('HTTP+SSE')
  const sse = await examineHttpSse(target, identity, deviations, server === undefined)
  server ??= sse.server
  const transports: TransportFinding[] = [
    {
      transport: 'Streamable HTTP',
      revisions: [...spoken].sort().reverse(),
      reason: spoken.size === 0 ? legacy.reason : undefined,
    },
    sse.finding,
  ]
  return { transports, server, failure: server ? undefined : `${legacy.reason}; ${sse.finding.reason}` }
}

/** A 403 without a challenge has other reasons than credentials. */
const isLogin = ({ status, headers }: PostAnswer): boolean =>
  status === 401 || (status === 403 && headers['www-authenticate'] !== undefined)

const loginRequired = async (
  { url, timeoutMs }: ProbeTarget,
  answer: PostAnswer,
  deviations: Deviations,
): Promise<Examination> => ({
  transports: [],
  authentication: await examineAuthentication(url, answer, timeoutMs, deviations),
  failure: `answered ${answer.status}: it wants credentials`,
})

interface LegacyFinding {
  readonly revisions: readonly string[]
  readonly server?: ServerFinding | undefined
  readonly login?: PostAnswer
  readonly reason: string
}

/** Opens a session in every legacy revision; the newest one is examined. */
const examineStreamable = async (
  target: ProbeTarget,
  identity: Json,
  deviations: Deviations,
  onStep: (step: string) => void,
  isMain: boolean,
): Promise<LegacyFinding> => {
  const revisions = new Set<string>()
  let server: ServerFinding | undefined
  let reason = ''
  for (const revision of LEGACY_NEWEST_FIRST) {
    onStep(`Streamable HTTP, ${revision}`)
    const { session, answer } = await openStreamable(target, revision, identity, deviations)
    if (isLogin(answer)) return { revisions: [...revisions], login: answer, reason }
    if (!session) {
      reason ||= `POST initialize is answered with ${describeReply(answer.reply)}`
      if (revisions.size === 0 && isNoMcp(answer)) break // the other revisions would be answered alike
      continue
    }
    const isFirst = revisions.size === 0
    revisions.add(session.revision)
    await session.confirm()
    if (!isFirst) await session.close()
    else {
      if (isMain) server = await checkServer(session, deviations)
      await session.checkTransport()
    }
  }
  if (revisions.size > 0) await checkVersionOffer(target, identity, deviations)
  return { revisions: [...revisions], server, reason }
}

/** A revision that does not exist must be answered with one that does. */
const checkVersionOffer = async (target: ProbeTarget, identity: Json, deviations: Deviations): Promise<void> => {
  const { session, answer } = await openStreamable(target, UNKNOWN_REVISION, identity, deviations)
  if (!session || !isRevision(session.revision))
    deviations.add('version-offer', 'Streamable HTTP', `answered ${session?.revision ?? describeReply(answer.reply)}`)
  await session?.close()
}

/** No JSON-RPC server answers like that. */
const isNoMcp = ({ status, reply }: PostAnswer): boolean => reply.kind === 'none' && status !== 400

interface SseFinding {
  readonly finding: TransportFinding
  readonly server?: ServerFinding | undefined
}

const examineHttpSse = async (
  target: ProbeTarget,
  identity: Json,
  deviations: Deviations,
  isMain: boolean,
): Promise<SseFinding> => {
  const revisions = new Set<string>()
  let server: ServerFinding | undefined
  let reason: string | undefined
  for (const revision of LEGACY_NEWEST_FIRST) {
    const opened = await openHttpSse(target, revision, identity, deviations)
    if (opened.kind === 'none') {
      reason ??= opened.reason
      break
    }
    const { examined } = opened
    if (isMain && revisions.size === 0) server = await checkServer(examined, deviations)
    revisions.add(examined.revision)
    await examined.close()
  }
  const finding: TransportFinding = {
    transport: 'HTTP+SSE',
    revisions: [...revisions],
    reason: revisions.size === 0 ? reason : undefined,
  }
  return { finding, server }
}

const USUAL_PATHS = ['/mcp', '/sse', '/mcp/']

/** Another path of the same host where an MCP server answers, for a hint. */
export const findOtherPath = async ({ url, headers, timeoutMs }: ProbeTarget): Promise<string | undefined> => {
  for (const path of USUAL_PATHS.filter(usual => usual !== url.pathname)) {
    const other = new URL(path, url)
    if (await answersMcp(other, headers, timeoutMs)) return other.href
  }
  return undefined
}

const answersMcp = async (url: URL, headers: ProbeTarget['headers'], timeoutMs: number): Promise<boolean> => {
  const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}')
  const accept = 'application/json, text/event-stream'
  try {
    const posted = await sendHttp(url, timeoutMs, {
      method: 'POST',
      headers: { ...headers, accept, 'content-type': 'application/json' },
      body,
    })
    if (posted.body.includes('"jsonrpc"') || posted.mediaType === 'text/event-stream') return true
    const got = await sendHttp(url, timeoutMs, { method: 'GET', headers: { ...headers, accept } })
    return got.status === 200 && got.mediaType === 'text/event-stream'
  } catch (error) {
    if (error instanceof HttpFailure) return false
    throw error
  }
}
