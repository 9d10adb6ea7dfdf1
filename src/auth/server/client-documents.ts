import { BoundedCache } from '../../std/bounded-cache.ts'
import { NotAcquired, Semaphore } from '../../std/semaphore.ts'
import { FetchFailed, type GuardedFetch, readJsonObject } from '../fetch/guarded-fetch.ts'
import { AttemptLimit } from './attempt-limit.ts'
import { type OAuthClient, readClientMetadata } from './client-metadata.ts'

/** A client whose id is the URL of its metadata, or why there is none. */
type DocumentResult = { readonly client: OAuthClient } | { readonly problem: string }

interface CachedDocument {
  readonly result: DocumentResult
  readonly until: number
}

const MOST_DOCUMENTS = 500
const LONGEST_URL = 512
const FAILURE_MS = 30_000
const SHORTEST_MS = 60_000
const DEFAULT_MS = 10 * 60_000
const LONGEST_MS = 24 * 60 * 60_000
const AT_ONCE = 8
const MOST_WAITING = 100
const FETCHES_PER_MINUTE = 60 // caused by one address

/** True for a client id that is the URL of a document (draft-ietf-oauth-client-id-metadata-document, section 3). */
export const isDocumentUrl = (id: string): boolean => {
  if (id.length > LONGEST_URL || !id.startsWith('https://') || !URL.canParse(id)) return false
  const url = new URL(id)
  return url.href === id && url.pathname !== '/' && url.hash === '' && url.username === '' && url.password === ''
}

/** Fetches the documents of clients that identify themselves by a URL. Only public addresses are used. */
export class ClientDocuments {
  readonly #fetch: GuardedFetch
  readonly #cache = new BoundedCache<CachedDocument>(MOST_DOCUMENTS, LONGEST_MS)
  readonly #fetching = new Map<string, Promise<DocumentResult>>()
  readonly #slots = new Semaphore(AT_ONCE, MOST_WAITING)
  readonly #attempts = new AttemptLimit(FETCHES_PER_MINUTE)

  constructor(fetch: GuardedFetch) {
    this.#fetch = fetch
  }

  /** `address` is that of the browser which causes the fetch. */
  async find(url: string, address: string | undefined): Promise<DocumentResult> {
    const cached = this.#cache.get(url)
    if (cached && Date.now() < cached.until) return cached.result
    const running = this.#fetching.get(url)
    if (running) return running
    if (this.#attempts.take(address) !== undefined)
      return { problem: 'too many documents were fetched for your address; try again in a minute' }
    const fetching = this.#read(url).finally(() => this.#fetching.delete(url))
    this.#fetching.set(url, fetching)
    return fetching
  }

  async #read(url: string): Promise<DocumentResult> {
    let release: (() => void) | undefined
    try {
      release = await this.#slots.acquire()
      const response = await this.#fetch(url)
      const result = readDocument(url, response.status, readJsonObject(response))
      const ttlMs = 'client' in result ? lifetimeOf(response.headers['cache-control']) : FAILURE_MS
      this.#cache.set(url, { result, until: Date.now() + ttlMs })
      return result
    } catch (error) {
      if (error instanceof NotAcquired) return { problem: 'too many documents are being fetched; try again' }
      if (!(error instanceof FetchFailed)) throw error
      const result = { problem: error.message }
      this.#cache.set(url, { result, until: Date.now() + FAILURE_MS })
      return result
    } finally {
      release?.()
    }
  }
}

const readDocument = (
  url: string,
  status: number,
  document: Readonly<Record<string, unknown>> | undefined,
): DocumentResult => {
  if (status !== 200) return { problem: `${url} answered with status ${status}` }
  if (!document) return { problem: `${url} is no JSON object` }
  if (document.client_id !== url) return { problem: `the "client_id" in ${url} is not that URL` }
  const method = document.token_endpoint_auth_method
  if (typeof method === 'string' && method.startsWith('client_secret'))
    return { problem: `${url} wants a secret, which a client with a public document cannot have` }
  const metadata = readClientMetadata(document)
  if ('code' in metadata) return { problem: `in ${url}, ${metadata.text}` }
  return { client: { id: url, source: 'document', ...metadata } }
}

const lifetimeOf = (cacheControl: string | undefined): number => {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(cacheControl ?? '')?.[1]
  const wanted = seconds === undefined ? DEFAULT_MS : Number(seconds) * 1000
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, wanted))
}
