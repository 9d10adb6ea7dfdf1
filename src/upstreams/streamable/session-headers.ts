import { transportRulesOf } from '../../protocol/revisions.ts'
import type { HttpLink } from '../http/http-link.ts'
import { sendMessage } from '../session/gateway-request.ts'
import type { Handshake } from '../session/handshake.ts'

/** The headers of every request of a session. */
export const sessionHeaders = (
  link: HttpLink,
  { revision, sessionId }: { readonly revision?: Handshake['revision']; readonly sessionId?: string | undefined },
): readonly string[] => {
  const version = revision && transportRulesOf(revision).versionHeader ? ['mcp-protocol-version', revision] : []
  const session = sessionId === undefined ? [] : ['mcp-session-id', sessionId]
  return [...link.headers, ...version, ...session]
}

/** Ends a session at the server, whatever it answers. */
export const endSession = (link: HttpLink, headers: readonly string[]): Promise<'ended' | 'unreachable'> =>
  new Promise(resolve =>
    sendMessage(link, 'DELETE', headers, [], 'end of session', outcome =>
      resolve(outcome === 'failed' ? 'unreachable' : 'ended'),
    ),
  )
