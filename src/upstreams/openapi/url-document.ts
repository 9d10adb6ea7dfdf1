import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { NEVER } from '../../protocol/cancellation.ts'
import { UpstreamFailure } from '../failures.ts'
import type { ApiClient } from './api-client.ts'

interface UrlDocumentOptions {
  readonly name: string // of the server
  readonly url: string
  readonly client: ApiClient
  readonly mostBytes: number // of the document, with the files it refers to
  readonly refreshMs: number // 0: it is read once
}

interface FetchedText {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const MOST_PARTS = 200
const ACCEPT = 'application/json, application/yaml, text/yaml;q=0.9, */*;q=0.8'

/** A document at a URL, which may refer to others of its origin. Every read after the first is a conditional request. */
export const urlDocument = ({ name, url, client, mostBytes, refreshMs }: UrlDocumentOptions) => {
  let validators: string[] = []
  let last: string | undefined // a hash of the text
  let left = mostBytes
  let parts = 0

  const get = async (from: string, headers: readonly string[]): Promise<FetchedText> => {
    const chunks: Buffer[] = []
    let answer: Pick<FetchedText, 'status' | 'headers'> = { status: 0, headers: {} }
    await client.send(
      { method: 'GET', url: from, headers: ['accept', ACCEPT, ...headers], body: null },
      {
        status: (status, received) => {
          answer = { status, headers: received }
        },
        bytes: chunk => void chunks.push(chunk),
      },
      NEVER,
      left,
    )
    const body = Buffer.concat(chunks)
    if (answer.status === 200) left -= body.length
    return { ...answer, text: body.toString('utf8') }
  }

  /** The text; undefined if it has not changed, unless `isWanted`. Rejects with UpstreamFailure. */
  const read = async (isWanted: boolean): Promise<string | undefined> => {
    left = mostBytes
    parts = 0
    const { status, headers, text } = await get(url, isWanted ? [] : validators).catch((error: unknown) => {
      if (!(error instanceof UpstreamFailure)) throw error
      throw new UpstreamFailure(name, { ...error.details, text: describe(url, error.details.text) })
    })
    if (status === 304 && last !== undefined) return undefined
    if (status !== 200) throw new UpstreamFailure(name, failureOf(status, url))
    validators = validatorsOf(headers)
    const hash = createHash('sha256').update(text).digest('base64')
    if (hash === last && !isWanted) return undefined
    last = hash
    return text
  }

  /** Another file. Rejects with an Error that says why it is not read. */
  const readPart = async (part: string): Promise<string> => {
    if (new URL(part).origin !== new URL(url).origin) throw new Error('it is not at the origin of the document')
    if (++parts > MOST_PARTS) throw new Error(`the document refers to more than ${MOST_PARTS} others`)
    const { status, text } = await get(part, [])
    if (status !== 200) throw new Error(`HTTP ${status}`)
    last = undefined // whether a part has changed is not known before it is read
    validators = []
    return text
  }

  const watch = (onChange: () => void): (() => void) => {
    if (refreshMs === 0) return () => {}
    const timer = setInterval(onChange, refreshMs).unref()
    return () => clearInterval(timer)
  }
  return { url, read, readPart, watch }
}

const validatorsOf = ({ etag, 'last-modified': modified }: IncomingHttpHeaders): string[] => [
  ...(etag === undefined ? [] : ['if-none-match', etag]),
  ...(modified === undefined ? [] : ['if-modified-since', modified]),
]

/** Without the query, which may hold a key. */
const shown = (url: string): string => {
  const { origin, pathname } = new URL(url)
  return (origin + pathname).slice(0, 200)
}

const describe = (url: string, text: string): string => `${text}; its document ${shown(url)} could not be read`

const failureOf = (status: number, url: string) => {
  if (status === 401 || status === 403)
    return {
      reason: 'upstream_auth',
      text: `has a document that wants credentials (HTTP ${status} at ${shown(url)}): add "headers", or save it as a file`,
    } as const
  if (status >= 500 || status === 429)
    return {
      reason: 'upstream_unreachable',
      text: `has a document that is not available (HTTP ${status} at ${shown(url)})`,
    } as const
  return {
    reason: 'upstream_protocol',
    text: `has a document that is not there (HTTP ${status} at ${shown(url)}): is the URL right?`,
  } as const
}
