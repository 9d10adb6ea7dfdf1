import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { SseDecoder } from '../wire/sse.ts'

/** One raw HTTP request. */
export interface ProbeRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | undefined
  /** Called for every event of an event stream; true ends the reading. */
  readonly onEvent?: ((event: { readonly event: string; readonly data: Buffer }) => boolean) | undefined
}

export interface ProbeResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly mediaType: string // without parameters, lower-case; '' if absent
  readonly body: Buffer // empty for an event stream
  readonly ms: number
}

/** The server could not be reached, or did not finish its answer. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure'
}

const MOST_BYTES = 16 * 1024 * 1024

/** Sends one request. Rejects with HttpFailure; a stream that is still open after the timeout counts as answered. */
export const sendHttp = (url: URL, timeoutMs: number, sent: ProbeRequest): Promise<ProbeResponse> =>
  new Promise((resolve, reject) => {
    const begun = performance.now()
    const open = url.protocol === 'https:' ? requestHttps : requestHttp
    let answered: IncomingMessage | undefined
    const chunks: Buffer[] = []
    let bytes = 0

    const finish = (): void => {
      clearTimeout(timer)
      if (!answered) return
      outgoing.destroy()
      resolve({
        status: answered.statusCode ?? 0,
        headers: answered.headers,
        mediaType: mediaTypeOf(answered.headers['content-type']),
        body: Buffer.concat(chunks),
        ms: performance.now() - begun,
      })
    }
    const fail = (error: Error): void => {
      clearTimeout(timer)
      reject(error)
    }
    const late = (): void => {
      if (answered && mediaTypeOf(answered.headers['content-type']) === EVENT_STREAM) return finish()
      fail(new HttpFailure(`${answered ? 'did not finish its answer' : 'did not answer'} within ${timeoutMs / 1000} s`))
      outgoing.destroy()
    }
    const timer = setTimeout(late, timeoutMs)

    const outgoing = open(url, { method: sent.method, headers: sent.headers, agent: false })
    outgoing.on('error', error => fail(new HttpFailure(failureText(error, url))))
    outgoing.on('response', response => {
      answered = response
      const decoder =
        mediaTypeOf(response.headers['content-type']) === EVENT_STREAM ? decoderOf(sent, finish) : undefined
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > MOST_BYTES) {
          fail(new HttpFailure(`sent more than ${MOST_BYTES / 1024 / 1024} MiB`))
          return void outgoing.destroy()
        }
        if (decoder) decoder.feed(chunk)
        else chunks.push(chunk)
      })
      response.on('end', finish)
      response.on('error', () => finish()) // the connection ended early: what came counts
    })
    outgoing.end(sent.body)
  })

/** Like sendHttp, but a failure is a response with the status 0 and the reason as its body. */
export const tryHttp = (url: URL, timeoutMs: number, sent: ProbeRequest): Promise<ProbeResponse> =>
  sendHttp(url, timeoutMs, sent).catch(error => {
    if (!(error instanceof HttpFailure)) throw error
    return { status: 0, headers: {}, mediaType: '', body: Buffer.from(error.message), ms: 0 }
  })

const EVENT_STREAM = 'text/event-stream'

const decoderOf = ({ onEvent }: ProbeRequest, finish: () => void): SseDecoder =>
  new SseDecoder(event => {
    if (onEvent?.(event) ?? true) finish()
  })

const mediaTypeOf = (header: string | undefined): string => (header ?? '').split(';')[0]?.trim().toLowerCase() ?? ''

const FAILURES: Readonly<Record<string, (url: URL) => string>> = {
  ECONNREFUSED: ({ hostname, port, protocol }) =>
    `nothing listens on port ${port || (protocol === 'https:' ? 443 : 80)} of ${hostname}`,
  ENOTFOUND: ({ hostname }) => `there is no host ${hostname}`,
  EAI_AGAIN: ({ hostname }) => `the name ${hostname} could not be looked up`,
  ECONNRESET: () => 'closed the connection without an answer',
  EHOSTUNREACH: ({ hostname }) => `no route to ${hostname}`,
  ENETUNREACH: ({ hostname }) => `no route to ${hostname}`,
  ETIMEDOUT: ({ hostname }) => `${hostname} did not accept the connection`,
  EPROTO: () => 'does not speak TLS on this port: try http:// instead of https://',
  ERR_SSL_WRONG_VERSION_NUMBER: () => 'does not speak TLS on this port: try http:// instead of https://',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: () => 'does not speak TLS on this port: try http:// instead of https://',
}

const failureText = (error: NodeJS.ErrnoException, url: URL): string => {
  const known = FAILURES[error.code ?? '']?.(url)
  if (known) return known
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/.test(error.code ?? '')
  return isCertificate ? `its certificate is not trusted (${error.message})` : error.message
}
