import { findRedirectProblem } from './redirect-uris.ts'

/** A client that may ask visitors for consent. None has a secret. */
export interface OAuthClient {
  readonly id: string
  readonly source: 'listed' | 'document' | 'registered'
  readonly name: string | undefined // what the client calls itself; it may claim anything
  readonly redirectUris: readonly string[]
}

/** What a client says about itself, in a registration or in its document. */
export interface ClientMetadata {
  readonly name: string | undefined
  readonly redirectUris: readonly [string, ...string[]]
}

/** Why metadata of a client is rejected: a code of RFC 7591, and a text for its author. */
export interface MetadataProblem {
  readonly code: 'invalid_redirect_uri' | 'invalid_client_metadata'
  readonly text: string
}

const MOST_REDIRECTS = 20
const LONGEST_NAME = 100
// Control characters, and those that change the direction or hide parts of a text.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu
const ANY_PORT = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\*/i // some documents write it so; any port is accepted anyway

/** Checks what a client says about itself. Members that are not used here are ignored, as RFC 7591 allows. */
export const readClientMetadata = (given: Readonly<Record<string, unknown>>): ClientMetadata | MetadataProblem => {
  const { redirect_uris, client_name, grant_types, response_types } = given
  const invalid = (text: string): MetadataProblem => ({ code: 'invalid_client_metadata', text })
  if (!isTextList(redirect_uris) || redirect_uris.length === 0)
    return { code: 'invalid_redirect_uri', text: '"redirect_uris" must be a list of at least one URI' }
  if (redirect_uris.length > MOST_REDIRECTS)
    return { code: 'invalid_redirect_uri', text: `"redirect_uris" has more than ${MOST_REDIRECTS} entries` }
  const redirectUris = redirect_uris.map(uri => uri.replace(ANY_PORT, '$1'))
  for (const uri of redirectUris) {
    const problem = findRedirectProblem(uri)
    if (problem) return { code: 'invalid_redirect_uri', text: `the redirect URI "${uri.slice(0, 200)}" ${problem}` }
  }
  if (client_name !== undefined && typeof client_name !== 'string') return invalid('"client_name" must be a string')
  if (grant_types !== undefined && !(isTextList(grant_types) && grant_types.includes('authorization_code')))
    return invalid('"grant_types" must contain "authorization_code", the only way to begin here')
  if (response_types !== undefined && !(isTextList(response_types) && response_types.includes('code')))
    return invalid('"response_types" must contain "code"')
  const [first, ...others] = redirectUris
  return { name: cleanName(client_name), redirectUris: [first as string, ...others] }
}

const isTextList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(each => typeof each === 'string')

/** A name as it is shown: one line, without characters that could make it look like another text. */
const cleanName = (name: string | undefined): string | undefined => {
  const clean = name?.replace(/\s+/g, ' ').replace(UNPRINTABLE, '').trim() ?? ''
  if (clean === '') return undefined
  return clean.length > LONGEST_NAME ? `${[...clean].slice(0, LONGEST_NAME).join('')}…` : clean
}
