import type { RemoteServer } from '../../config/snapshot.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { headerValueError } from '../../std/header-text.ts'
import { credentialsFor } from '../caller-credentials.ts'
import { createHttpLink, type HttpLinkOptions } from '../http/http-link.ts'
import { tokensWithoutLogin, type UpstreamLogins } from '../login/upstream-logins.ts'
import { endSession, sessionHeaders } from '../streamable/session-headers.ts'
import type { PoolSlot } from './pool.ts'
import type { RecordPlace } from './server-session-record.ts'
import type { SessionEnder } from './session-sweep.ts'
import { recordIds, urlHash } from './stored-server-session.ts'

type NamedServer = RemoteServer & { readonly name: string }

/**
 * Says where the session of a caller with a server over HTTP is recorded. `idleMs`: after which an unused one is closed.
 * What depends on the server only is prepared once: every session of a client needs a place.
 */
export const createRecordPlaces = (server: NamedServer, idleMs: number) => {
  const { name } = server
  const url = urlHash(server.url)
  const idOf = recordIds(server)
  return ({ workspace, principal, session, isTransient, isNewSession }: Caller, slot: PoolSlot): RecordPlace => {
    const { key, index, owner } = slot
    // A further session belongs to calls that have lost their process, too.
    const isShort = key === undefined || index > 0 || isTransient
    return {
      id: isShort ? undefined : idOf(owner, key),
      isNew: isNewSession === true,
      owner: { server: name, url, workspace, principal, session },
      lifetimeMs: idleMs,
    }
  }
}

/** Ends sessions of that server that were abandoned, each with the credentials of its caller. */
export const createSessionEnder = (
  server: NamedServer,
  options: HttpLinkOptions & { readonly logins?: UpstreamLogins | undefined },
): SessionEnder => {
  const { name, url, headers, personal } = server
  return {
    url: urlHash(url),
    end: async stored => {
      const own = personal ? credentialsFor({ name, personal, faultOf: headerValueError }, stored) : {}
      const tokens = options.logins && tokensWithoutLogin(options.logins, stored.principal)
      const link = createHttpLink({ ...server, headers: { ...headers, ...own } }, { ...options, tokens })
      try {
        return await endSession(link, sessionHeaders(link, { ...stored.handshake, sessionId: stored.sessionId }))
      } finally {
        await link.http.close()
      }
    },
  }
}
