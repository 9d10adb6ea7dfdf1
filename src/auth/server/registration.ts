import type { OAuthResponse } from '../../protocol/authorization-server.ts'
import type { Log } from '../../telemetry/log.ts'
import { AttemptLimit } from './attempt-limit.ts'
import type { RecordAuthEvent } from './auth-events.ts'
import { readClientMetadata } from './client-metadata.ts'
import { OAuthRejection, rejectForNow } from './oauth-rejection.ts'
import type { RegisteredClients } from './registered-clients.ts'

const REGISTRATIONS_PER_MINUTE = 30 // new ones, of one address

/** Registers clients (RFC 7591). Whatever they ask for, they get no secret. */
export const createRegistration = (
  clients: Pick<RegisteredClients, 'register'>,
  isOpen: boolean,
  record: RecordAuthEvent,
  log: Log,
) => {
  const attempts = new AttemptLimit(REGISTRATIONS_PER_MINUTE)
  let loggedAt = 0 // a flood is logged once a minute

  /** Throws if too many new clients come from one address. */
  const limit = (address: string | undefined): void => {
    const waitMs = attempts.take(address)
    if (waitMs === undefined) return
    if (Date.now() - loggedAt > 60_000) {
      loggedAt = Date.now()
      log.warn({ security: true, address }, 'too many registrations of clients from one address')
    }
    throw rejectForNow(`Too many registrations: try again in ${Math.ceil(waitMs / 1000)} seconds`, waitMs)
  }

  return async (body: Buffer, address: string | undefined): Promise<OAuthResponse> => {
    if (!isOpen)
      throw new OAuthRejection(
        'access_denied',
        'This gateway serves listed clients only; its operator lists them under "auth.server.clients"',
        403,
      )
    const given = parseObject(body)
    if (!given) throw new OAuthRejection('invalid_client_metadata', 'The body must be a JSON object')
    const metadata = readClientMetadata(given)
    if ('code' in metadata) throw new OAuthRejection(metadata.code, metadata.text)
    const { id, registeredAt, isNew } = await clients.register(metadata, () => limit(address))
    if (isNew)
      record('client_registered', { client: id, name: metadata.name, redirectUris: metadata.redirectUris, address })
    return {
      status: 201,
      body: {
        client_id: id,
        client_id_issued_at: Math.floor(registeredAt / 1000),
        ...(metadata.name !== undefined && { client_name: metadata.name }),
        redirect_uris: metadata.redirectUris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        ...(typeof given.scope === 'string' && { scope: given.scope }),
        ...(typeof given.application_type === 'string' && { application_type: given.application_type }),
      },
    }
  }
}

const parseObject = (body: Buffer): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(body.toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}
