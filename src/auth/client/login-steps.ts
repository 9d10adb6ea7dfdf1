import type { LoginStep } from '../../protocol/oauth.ts'
import { FetchFailed, type FetchRequest, type FetchResponse, type GuardedFetch } from '../fetch/guarded-fetch.ts'

const MOST_STEPS = 24 // of one server
const MOST_SERVERS = 50
const LONGEST = 8 * 1024 // characters of an answer
const LONGEST_VALUE = 300
const REDACTED = '[redacted]'

/** Members that no party keeps secret. Values of all others are not kept: an authorization server may invent some. */
const PUBLIC_PARAMS: ReadonlySet<string> = new Set([
  ...['grant_type', 'redirect_uri', 'client_id', 'resource', 'scope', 'audience', 'token_type_hint'],
  ...['requested_token_type', 'subject_token_type', 'client_assertion_type', 'response_type', 'prompt', 'iss'],
  ...['code_challenge', 'code_challenge_method', 'error', 'error_description', 'error_uri'],
])
const PUBLIC_TOKEN_MEMBERS: ReadonlySet<string> = new Set([
  ...['token_type', 'expires_in', 'scope', 'issued_token_type', 'error', 'error_description', 'error_uri'],
])
const SECRET_CLIENT_MEMBERS: ReadonlySet<string> = new Set(['client_secret', 'registration_access_token'])

/** The latest steps of logins at each server, for the owner who looks for what went wrong. In memory, without secrets. */
export class LoginSteps {
  readonly #steps = new Map<string, LoginStep[]>() // by the URL of the configuration that leads to them

  /** The steps that a server's entry has led to, oldest first. */
  of(...from: readonly (string | undefined)[]): readonly LoginStep[] {
    const found = [...new Set(from)].flatMap(url => (url === undefined ? [] : (this.#steps.get(url) ?? [])))
    return found.sort((a, b) => a.at - b.at).slice(-MOST_STEPS)
  }

  /** Passes requests on, and keeps what they were. */
  watch(fetch: GuardedFetch): GuardedFetch {
    return async (url, request = {}) => {
      const step = { at: Date.now(), kind: kindOf(request), method: request.method ?? 'GET', url: withoutQuery(url) }
      const sent = sentBy(request, step.kind)
      try {
        const response = await fetch(url, request)
        this.#add(request.from, { ...step, ...sent, status: response.status, ...answerIn(response, step.kind) })
        return response
      } catch (error) {
        if (error instanceof FetchFailed) this.#add(request.from, { ...step, ...sent, error: error.message })
        throw error
      }
    }
  }

  /** A browser is sent to the authorization server, or comes back from it. */
  redirected(from: string, kind: 'authorization' | 'callback', address: string): void {
    const url = new URL(address)
    this.#add(from, {
      at: Date.now(),
      kind,
      method: 'redirect',
      url: withoutQuery(address),
      sent: paramsOf(url.search),
    })
  }

  #add(from: string | undefined, step: LoginStep): void {
    if (from === undefined) return
    const steps = this.#steps.get(from) ?? []
    this.#steps.delete(from) // the latest server is the last of the map
    this.#steps.set(from, [...steps, step].slice(-MOST_STEPS))
    const [oldest] = this.#steps.keys()
    if (this.#steps.size > MOST_SERVERS && oldest !== undefined) this.#steps.delete(oldest)
  }
}

const kindOf = ({ method, body = '', headers }: FetchRequest): LoginStep['kind'] => {
  if (method !== 'POST') return 'discovery'
  if (headers?.['content-type'] === 'application/json') return body.includes('"jsonrpc"') ? 'challenge' : 'registration'
  return new URLSearchParams(body).has('grant_type') ? 'token' : 'revocation'
}

const withoutQuery = (address: string): string => {
  const url = URL.parse(address)
  return url ? (url.origin + url.pathname).slice(0, LONGEST_VALUE) : 'an invalid URL'
}

const paramsOf = (text: string): LoginStep['sent'] =>
  [...new URLSearchParams(text)].map(([name, value]) => ({
    name: name.slice(0, LONGEST_VALUE),
    value: PUBLIC_PARAMS.has(name) ? value.slice(0, LONGEST_VALUE) : REDACTED,
  }))

const sentBy = ({ body }: FetchRequest, kind: LoginStep['kind']): Pick<LoginStep, 'sent' | 'request'> => {
  if (body === undefined || kind === 'challenge') return {}
  return kind === 'registration' ? { request: body.slice(0, LONGEST) } : { sent: paramsOf(body) }
}

/** What may be shown of a member of an answer. */
const isShown = (kind: LoginStep['kind'], name: string): boolean => {
  if (kind === 'token' || kind === 'revocation') return PUBLIC_TOKEN_MEMBERS.has(name)
  return !(kind === 'registration' && SECRET_CLIENT_MEMBERS.has(name))
}

const answerIn = (
  { status, headers, body }: FetchResponse,
  kind: LoginStep['kind'],
): Pick<LoginStep, 'answer' | 'challenge'> => {
  const challenge = headers['www-authenticate']
  const said = challenge === undefined ? {} : { challenge: String(challenge).slice(0, LONGEST) }
  if (kind === 'challenge' && status !== 401) return said // the answer of the server to a ping
  try {
    const document: unknown = JSON.parse(body.toString())
    if (typeof document !== 'object' || document === null || Array.isArray(document)) return said
    const shown = Object.entries(document).map(([name, value]) => [name, isShown(kind, name) ? value : REDACTED])
    return { ...said, answer: JSON.stringify(Object.fromEntries(shown)).slice(0, LONGEST) }
  } catch {
    return said // no JSON: pages of other programs are of no use here
  }
}
