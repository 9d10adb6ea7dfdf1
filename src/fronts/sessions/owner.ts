import { networkOf } from '../../protocol/network.ts'
import type { Log } from '../../telemetry/log.ts'
import type { FrontRequest } from '../http/front-request.ts'
import type { ClientSession } from './client-session.ts'

/** The owner that sessions, channels and stream logs count for: a principal, or the network of an anonymous caller. */
export const quotaOwner = ({ principal, request }: Pick<FrontRequest, 'principal' | 'request'>): string =>
  principal === undefined ? `@${networkOf(request.socket.remoteAddress)}` : `=${principal}`

/** True if a session or channel belongs to this principal; anybody else who knows its id is worth a line. */
export const isOwner = ({ caller }: ClientSession, principal: string | undefined, log: Log): boolean => {
  if (caller.principal === principal) return true
  log.warn(
    { security: true, principal, owner: caller.principal, workspace: caller.workspace },
    'refused the session id of somebody else',
  )
  return false
}
