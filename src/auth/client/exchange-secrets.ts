import { spellingsOf, withoutSpellings } from '../../std/known-secrets.ts'
import type { FetchRequest } from '../fetch/guarded-fetch.ts'

export const HIDDEN_VALUE = '[redacted]'

/** The secrets in the header with which a client proves itself (RFC 6749, section 2.3.1). */
export const secretsInHeader = ({ headers }: FetchRequest): readonly string[] => {
  const [, credentials = ''] = headers?.authorization?.split(' ') ?? []
  const [, secret = ''] = /^[^:]*:(.*)$/s.exec(Buffer.from(credentials, 'base64').toString()) ?? []
  return [credentials, secret, decode(secret)]
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The text without the secrets, however they are spelled in it. */
export const withoutSecrets = (text: string, secrets: Iterable<string>): string =>
  withoutSpellings(text, spellingsOf(secrets), HIDDEN_VALUE)
