import { signal } from '@preact/signals'
import { stringifyExact } from './exact-json.ts'

/** An answer of the admin API that is no success, or none at all (status 0). */
export class ApiError extends Error {
  readonly status: number
  readonly details: unknown

  constructor(status: number, message: string, details?: unknown) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.details = details
  }
}

interface ApiOptions {
  readonly signal?: AbortSignal | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Proves that a request comes from this page: the gateway gives it with the session. */
export const csrf = signal<string | undefined>(undefined)

/** Set by an answer that says the session has ended; the sign-in form reads it. */
export const hasExpired = signal(false)

export const SESSION_PATH = 'admin/session'
const UNREACHABLE = 'The gateway does not answer. Check that it is running: dragoman status'

/** The URL of a path of the gateway, relative to the page so that it is right behind a proxy's prefix, too. */
export const gatewayUrl = (path: string): string => new URL(path.replace(/^\//, ''), document.baseURI).href

const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError'

/** Sends a request of the admin API and gives the raw response; fails with an ApiError if it is no success. */
export const send = async (
  method: string,
  path: string,
  body?: unknown,
  { signal, headers }: ApiOptions = {},
): Promise<Response> => {
  const isRead = method === 'GET'
  const response = await fetch(gatewayUrl(path), {
    method,
    headers: {
      accept: 'application/json',
      ...(!isRead && csrf.value !== undefined && { 'x-dragoman-csrf': csrf.value }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? null : stringifyExact(body),
    signal: signal ?? null,
  }).catch((error: unknown) => {
    throw isAbort(error) ? error : new ApiError(0, UNREACHABLE)
  })
  if (response.ok) return response
  if (response.status === 401 && path !== SESSION_PATH) hasExpired.value = true // a wrong token or link ends nothing
  throw await readError(response)
}

const readError = async (response: Response): Promise<ApiError> => {
  const text = await response.text().catch(() => '')
  return errorOf(response.status, text, response.headers.get('retry-after'))
}

/** The refusal in the body of a response. */
export const errorOf = (status: number, text: string, retryAfter: string | null = null): ApiError => {
  const { message, details } = errorIn(text)
  if (status === 429)
    return new ApiError(status, `Too many requests. Try again in ${retryAfter ?? 'a few'} seconds`, details)
  return new ApiError(status, message ?? `The gateway answered with status ${status}`, details)
}

const errorIn = (text: string): { readonly message?: string; readonly details?: unknown } => {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown; details?: unknown } }
    return typeof error?.message === 'string' ? { message: error.message, details: error.details } : {}
  } catch {
    return {} // a proxy before the gateway has answered
  }
}

const json = async <T>(method: string, path: string, body?: unknown, options?: ApiOptions): Promise<T> => {
  const response = await send(method, path, body, options)
  const text = await response.text()
  return (text === '' ? undefined : JSON.parse(text)) as T
}

/** The admin API. The types of the answers are those of `src/admin/api/`. */
export const api = {
  get: <T>(path: string, options?: ApiOptions): Promise<T> => json<T>('GET', path, undefined, options),
  post: <T>(path: string, body?: unknown, options?: ApiOptions): Promise<T> => json<T>('POST', path, body, options),
  put: <T>(path: string, body: unknown, options?: ApiOptions): Promise<T> => json<T>('PUT', path, body, options),
  patch: <T>(path: string, body: unknown, options?: ApiOptions): Promise<T> => json<T>('PATCH', path, body, options),
  delete: <T>(path: string, body?: unknown, options?: ApiOptions): Promise<T> => json<T>('DELETE', path, body, options),
} as const

/** What a failure says to the user. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
