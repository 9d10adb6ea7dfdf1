import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import { type Dispatcher, request } from 'undici'

/** Where the data of one signal is sent. */
export interface OtlpTarget {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly isCompressed: boolean
}

/** What became of one request. */
export type PostOutcome =
  | { readonly kind: 'sent'; readonly rejected: number; readonly reason?: string } // rejected: parts the collector did not accept
  | { readonly kind: 'refused'; readonly reason: string } // must not be sent again
  | { readonly kind: 'failed'; readonly reason: string; readonly retryMs?: number | undefined } // may be sent again later

/** OTLP/HTTP, "Retryable Response Codes". */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])
const MAX_ANSWER_BYTES = 64 * 1024
const LONGEST_RETRY_MS = 5 * 60_000

const compress = promisify(gzip)
// Telemetry repeats itself so much that the slower levels gain little.
const COMPRESSION = { level: constants.Z_BEST_SPEED }

/** Sends one body; never rejects. A collector that hangs is left after the timeout. */
export const postOtlp = async (target: OtlpTarget, body: string | Buffer): Promise<PostOutcome> => {
  const { url, headers, timeoutMs, isCompressed } = target
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await request(url, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        ...(isCompressed && { 'content-encoding': 'gzip' }),
      },
      body: isCompressed ? await compress(body, COMPRESSION) : body,
      signal,
    })
    return outcomeOf(response, await readSome(response.body))
  } catch (error) {
    const { name, message, code } = error as NodeJS.ErrnoException
    return { kind: 'failed', reason: name === 'TimeoutError' ? `no answer in ${timeoutMs} ms` : (code ?? message) }
  }
}

const outcomeOf = ({ statusCode, headers }: Dispatcher.ResponseData, text: string): PostOutcome => {
  if (statusCode >= 200 && statusCode < 300) return { kind: 'sent', ...partialSuccess(text) }
  const reason = `HTTP ${statusCode}`
  if (!RETRYABLE.has(statusCode)) return { kind: 'refused', reason }
  const seconds = Number(headers['retry-after'])
  return { kind: 'failed', reason, retryMs: seconds > 0 ? Math.min(seconds * 1000, LONGEST_RETRY_MS) : undefined }
}

const readSome = async (body: AsyncIterable<Buffer>): Promise<string> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) break // leaving the loop closes the connection
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** The counts of a collector that has accepted a part only; most answer `{}`. */
const partialSuccess = (text: string): { rejected: number; reason?: string } => {
  try {
    const { partialSuccess: part } = JSON.parse(text) as { partialSuccess?: Record<string, unknown> }
    const rejected = Number(part?.rejectedSpans ?? part?.rejectedDataPoints ?? 0) || 0
    return rejected > 0 ? { rejected, reason: String(part?.errorMessage ?? '').slice(0, 200) } : { rejected: 0 }
  } catch {
    return { rejected: 0 } // an answer in the binary form
  }
}
