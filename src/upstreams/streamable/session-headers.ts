import { transportRulesOf } from '../../protocol/revisions.ts'
import type { HttpLink } from '../http/http-link.ts'
import { isRetryable, type SendRefusal, sendMessage } from '../session/gateway-request.ts'
import type { Handshake } from '../session/handshake.ts'
import type { ServerSessionRecord } from '../session/server-session-record.ts'
import { isSessionGone } from '../session/session-gone.ts'

/** The headers of every request of a session. */
export const sessionHeaders = (
  link: HttpLink,
  { revision, sessionId }: { readonly revision?: Handshake['revision']; readonly sessionId?: string | undefined },
): readonly string[] => {
  const version = revision && transportRulesOf(revision).versionHeader ? ['mcp-protocol-version', revision] : []
  const session = sessionId === undefined ? [] : ['mcp-session-id', sessionId]
  return [...link.headers, ...version, ...session]
}

/** The server has not looked at the session: it checks credentials first. With others it may end later. */
const NEEDS_CREDENTIALS: ReadonlySet<number> = new Set([401, 403])
const NOT_IMPLEMENTED = 501 // as 405: the server does not let clients end sessions

/**
 * `ended`: the session is gone, or the server does not let clients end it; `refused`: it may be open still, and end when it
 * is tried again; `unreachable`: the same, and the server did not respond.
 */
export type EndOutcome = 'ended' | 'refused' | 'unreachable'

/** Ends a session at the server. */
export const endSession = (link: HttpLink, headers: readonly string[]): Promise<EndOutcome> =>
  new Promise(resolve =>
    sendMessage(link, 'DELETE', headers, [], 'end of session', (outcome, refusal) => {
      if (outcome === 'taken' || (refusal && isFinal(refusal))) resolve('ended')
      else resolve(refusal ? 'refused' : 'unreachable')
    }),
  )

/** Ends a session that the gateway opened but cannot use; the sweep does that if the server does not end it now. */
export const endUnusedSession = async (
  link: HttpLink,
  session: Handshake | Pick<Handshake, 'sessionId'>,
  record: ServerSessionRecord,
): Promise<void> => {
  const { sessionId } = session
  if (sessionId === undefined) return
  const hasEnded = endSession(link, sessionHeaders(link, session)).then(outcome => outcome === 'ended')
  record.recordUnlessEnded({ sessionId, handshake: 'result' in session ? session : undefined }, hasEnded)
  await hasEnded
}

const isFinal = (refusal: SendRefusal): boolean => {
  const { status } = refusal
  return isSessionGone(refusal) || status === NOT_IMPLEMENTED || !(isRetryable(status) || NEEDS_CREDENTIALS.has(status))
}
