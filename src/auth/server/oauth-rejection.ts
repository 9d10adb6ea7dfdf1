import type { OAuthResponse } from '../../protocol/authorization-server.ts'

/** The error of an OAuth endpoint: its code is one of RFC 6749, 7591 or 8707. */
export class OAuthRejection extends Error {
  readonly code: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: string, message: string, status = 400, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.code = code
    this.status = status
    this.headers = headers
  }
}

/** Runs an endpoint; a rejection becomes its response. */
export const answerOAuth = async (run: () => Promise<OAuthResponse>): Promise<OAuthResponse> => {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof OAuthRejection)) throw error
    const { status, code, message, headers } = error
    return { status, body: { error: code, error_description: message }, headers }
  }
}

/** A client that must be told to wait. */
export const rejectForNow = (message: string, waitMs: number): OAuthRejection =>
  new OAuthRejection('temporarily_unavailable', message, 429, { 'retry-after': String(Math.ceil(waitMs / 1000)) })
