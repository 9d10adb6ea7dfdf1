import type { LoginStep } from '../../protocol/oauth.ts'
import { FetchFailed, type FetchRequest, type FetchResponse, type GuardedFetch } from '../fetch/guarded-fetch.ts'
import { HIDDEN_VALUE, secretsInHeader, withoutSecrets } from './exchange-secrets.ts'

const MOST_STEPS = 24 // of one server
const MOST_SERVERS = 50
const LONGEST = 8 * 1024 // characters of an answer
const LONGEST_VALUE = 300

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
      const { shown, secrets } = sentBy(request, step.kind)
      try {
        const response = await fetch(url, request)
        this.#add(request.from, {
          ...step,
          ...shown,
          status: response.status,
          ...answerIn(response, step.kind, secrets),
        })
        return response
      } catch (error) {
        if (error instanceof FetchFailed) this.#add(request.from, { ...step, ...shown, error: error.message })
        throw error
      }
    }
  }

  /** A browser is sent to the authorization server, or comes back from it. */
  redirected(from: string, kind: 'authorization' | 'callback', address: string): void {
    const params = [...new URL(address).searchParams]
    const sent = describeParams(params, secretParams(params))
    this.#add(from, { at: Date.now(), kind, method: 'redirect', url: withoutQuery(address), sent })
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

type Params = readonly (readonly [name: string, value: string])[]

const secretParams = (params: Params): readonly string[] =>
  params.flatMap(([name, value]) => (PUBLIC_PARAMS.has(name) ? [] : [value]))

const describeParams = (params: Params, secrets: readonly string[]): LoginStep['sent'] =>
  params.map(([name, value]) => ({
    name: name.slice(0, LONGEST_VALUE),
    value: PUBLIC_PARAMS.has(name) ? withoutSecrets(value, secrets).slice(0, LONGEST_VALUE) : HIDDEN_VALUE,
  }))

/** What was sent, and the secrets in it. */
const sentBy = (
  request: FetchRequest,
  kind: LoginStep['kind'],
): { readonly shown: Pick<LoginStep, 'sent' | 'request'>; readonly secrets: readonly string[] } => {
  const { body } = request
  const inHeader = secretsInHeader(request)
  if (body === undefined || kind === 'challenge') return { shown: {}, secrets: inHeader }
  if (kind === 'registration') return { shown: { request: body.slice(0, LONGEST) }, secrets: inHeader }
  const params = [...new URLSearchParams(body)]
  const secrets = [...inHeader, ...secretParams(params)]
  return { shown: { sent: describeParams(params, secrets) }, secrets }
}

/** What may be shown of a member of an answer. */
const isShown = (kind: LoginStep['kind'], name: string): boolean => {
  if (kind === 'token' || kind === 'revocation') return PUBLIC_TOKEN_MEMBERS.has(name)
  return !(kind === 'registration' && SECRET_CLIENT_MEMBERS.has(name))
}

/** `sent` are the secrets that the other party was sent: it may repeat them in members that are shown. */
const answerIn = (
  { status, headers, body }: FetchResponse,
  kind: LoginStep['kind'],
  sent: readonly string[],
): Pick<LoginStep, 'answer' | 'challenge'> => {
  const document = kind === 'challenge' && status !== 401 ? undefined : readDocument(body) // a server answers a ping
  const members = Object.entries(document ?? {})
  const issued = members.flatMap(([name, value]) => (typeof value === 'string' && !isShown(kind, name) ? [value] : []))
  const show = (text: string): string => withoutSecrets(text, [...sent, ...issued]).slice(0, LONGEST)
  const challenge = headers['www-authenticate']
  const shown = members.map(([name, value]) => [name, isShown(kind, name) ? value : HIDDEN_VALUE])
  return {
    ...(challenge !== undefined && { challenge: show(String(challenge)) }),
    ...(document && { answer: show(JSON.stringify(Object.fromEntries(shown))) }),
  }
}

/** Undefined for anything but an object of JSON: pages of other programs are of no use here. */
const readDocument = (body: Buffer): object | undefined => {
  try {
    const document: unknown = JSON.parse(body.toString())
    return typeof document === 'object' && document !== null && !Array.isArray(document) ? document : undefined
  } catch {
    return undefined
  }
}
