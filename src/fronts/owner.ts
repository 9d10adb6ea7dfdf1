import type { Log } from '../telemetry/log.ts'
import type { Conversation } from './conversation.ts'

/** True if a session or channel belongs to this principal; anybody else who knows its id is worth a line. */
export const isOwner = ({ caller }: Conversation, principal: string | undefined, log: Log): boolean => {
  if (caller.principal === principal) return true
  log.warn(
    { security: true, principal, owner: caller.principal, workspace: caller.workspace },
    'refused the session id of somebody else',
  )
  return false
}
