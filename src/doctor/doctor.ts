import type { ProcessServer } from '../config/snapshot.ts'
import { MODERN } from '../protocol/revisions.ts'
import { UpstreamFailure } from '../upstreams/failures.ts'
import { Json } from '../wire/json/json.ts'
import { checkServer } from './check-server.ts'
import { Deviations } from './deviations.ts'
import { type Examination, examineHttp, findOtherPath, LEGACY_NEWEST_FIRST } from './examine-http.ts'
import { HttpFailure, sendHttp } from './http-send.ts'
import type { DoctorReport, ServerFinding } from './report.ts'
import { ProgramStarter } from './stdio.ts'

/** What to examine. */
export type DoctorTarget =
  | { readonly kind: 'remote'; readonly url: URL; readonly headers: Readonly<Record<string, string>> }
  | (ProcessServer & { readonly name: string })

export interface DoctorOptions {
  readonly timeoutMs: number // of each request
  readonly version: string // of this program
  readonly onStep?: (step: string) => void // called as each transport and revision is tried
}

const UNREACHABLE = { transports: [], isUnreachable: true }

/** Examines one server: which transports and revisions it speaks, what it offers, and where it deviates from the rules. */
export const examine = async (
  target: DoctorTarget,
  { timeoutMs, version, onStep = () => {} }: DoctorOptions,
): Promise<DoctorReport> => {
  const deviations = new Deviations()
  const identity = Json.of({ name: 'dragoman-doctor', version })
  const isRemote = target.kind === 'remote'
  const examination = isRemote
    ? await examineRemote({ ...target, timeoutMs }, identity, deviations, onStep)
    : await examineProgram(target, timeoutMs, identity, deviations, onStep)
  const { transports, server, authentication, failure, stderr } = examination
  const found = deviations.list()
  const isLost = isRemote && !server && !authentication && !examination.isUnreachable
  const other = isLost ? await findOtherPath({ ...target, timeoutMs }) : undefined
  return {
    target: isRemote ? target.url.href : [target.command, ...target.args].join(' '),
    verdict: verdictOf(examination, found.length > 0),
    failure,
    hint: other === undefined ? undefined : `an MCP server answers at ${other}`,
    transports,
    server,
    authentication,
    deviations: server || authentication || !isRemote ? found : [],
    stderr: stderr === '' ? undefined : stderr,
  }
}

const verdictOf = (
  { server, authentication, isUnreachable }: Examination,
  deviates: boolean,
): DoctorReport['verdict'] => {
  if (isUnreachable) return 'unreachable'
  if (authentication) return 'login-required'
  if (!server) return 'not-mcp'
  return deviates ? 'deviates' : 'conforms'
}

const MOST_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308])

type RemoteTarget = Extract<DoctorTarget, { kind: 'remote' }> & { readonly timeoutMs: number }

const examineRemote = async (
  target: RemoteTarget,
  identity: Json,
  deviations: Deviations,
  onStep: (step: string) => void,
): Promise<Examination> => {
  try {
    const url = await followRedirects(target)
    return await examineHttp({ ...target, url }, identity, deviations, onStep)
  } catch (error) {
    if (error instanceof HttpFailure) return { ...UNREACHABLE, failure: error.message }
    throw error
  }
}

/** The address after redirects within the same host. Rejects with HttpFailure. */
const followRedirects = async ({ url, headers, timeoutMs }: RemoteTarget): Promise<URL> => {
  let at = url
  for (let count = 0; count < MOST_REDIRECTS; count++) {
    const accept = 'application/json, text/event-stream'
    const sent = {
      method: 'POST',
      headers: { ...headers, accept, 'content-type': 'application/json' },
      body: Buffer.from('{}'),
    } as const
    const { status, headers: answered } = await sendHttp(at, timeoutMs, sent)
    if (!REDIRECTS.has(status) || !URL.canParse(answered.location ?? '', at.href)) return at
    const next = new URL(answered.location ?? '', at)
    if (next.hostname !== at.hostname)
      throw new HttpFailure(`redirects to ${next.origin}, another host; examine that address instead`)
    at = next
  }
  throw new HttpFailure(`redirects more than ${MOST_REDIRECTS} times`)
}

const examineProgram = async (
  target: Extract<DoctorTarget, { kind: 'process' }>,
  timeoutMs: number,
  identity: Json,
  deviations: Deviations,
  onStep: (step: string) => void,
): Promise<Examination> => {
  const programs = new ProgramStarter(target, timeoutMs, deviations)
  const spoken = new Set<string>()
  let server: ServerFinding | undefined
  let failure: string | undefined
  let stderr: string | undefined
  try {
    for (const revision of [MODERN, ...LEGACY_NEWEST_FIRST]) {
      onStep(`stdio, ${revision}`)
      const opened = await programs.open(revision, identity)
      if (opened.kind === 'none') {
        failure = opened.reason
        stderr = opened.stderr
        continue
      }
      const { examined } = opened
      const isFirst = !spoken.has(examined.revision) && server === undefined
      spoken.add(examined.revision)
      if (isFirst) server = await checkServer(examined, deviations)
      programs.end(examined)
    }
  } catch (error) {
    if (error instanceof UpstreamFailure) return { ...UNREACHABLE, failure: error.details.text }
    throw error
  } finally {
    await programs.ended()
  }
  const transport = {
    transport: 'stdio',
    revisions: [...spoken].sort().reverse(),
    reason: server ? undefined : failure,
  } as const
  return { transports: [transport], server, failure: server ? undefined : failure, stderr: server ? undefined : stderr }
}
