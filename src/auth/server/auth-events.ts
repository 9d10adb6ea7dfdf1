import type { WriteAuditEvent } from '../../telemetry/audit-log.ts'
import type { Log } from '../../telemetry/log.ts'

/** What happens at the authorization server: a line of the log, and an event of the audit log. */
const MESSAGES = {
  signed_in: 'visitor signed in',
  sign_in_failed: 'sign-in failed',
  client_registered: 'client registered',
  client_denied: 'visitor denied a client access',
  grant_created: 'grant given to a client',
  grant_ended: 'grant ended',
  refresh_token_reused: 'refresh token used again: its grant is ended, because it may be stolen',
} as const

export type AuthEvent = keyof typeof MESSAGES

/** Events that may be attacks. */
const ALARMS: ReadonlySet<AuthEvent> = new Set(['sign_in_failed', 'refresh_token_reused'])

/** Records an event. Fields hold no secrets. */
export type RecordAuthEvent = (event: AuthEvent, fields: Readonly<Record<string, unknown>>) => void

export const createAuthEvents =
  (log: Log, writeAudit: WriteAuditEvent | undefined): RecordAuthEvent =>
  (event, fields) => {
    if (ALARMS.has(event)) log.warn({ security: true, ...fields }, MESSAGES[event])
    else log.info(fields, MESSAGES[event])
    writeAudit?.(event, fields)
  }
