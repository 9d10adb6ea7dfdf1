import { join } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import type { HttpLink } from '../http/http-link.ts'
import { type ResponseHandler, ResponseReader } from '../http/response-reader.ts'

const DRAIN_MS = 1000 // for a stream nobody asked for to end by itself

/** Sends something that has no answer (a notification, a response, the end of a session); only a refusal is worth a line. */
export const tell = (
  link: HttpLink,
  method: 'POST' | 'DELETE',
  headers: readonly string[],
  pieces: readonly Buffer[],
  what: string,
  done: () => void = () => {},
): void => {
  let drain: NodeJS.Timeout | undefined
  const reader: ResponseHandler = {
    started: (status, headers) => {
      // It was taken; some servers open a stream for it all the same, and a stream need not end.
      if (status >= 300 || !isEventStream(headers['content-type'])) return
      drain = setTimeout(() => sending.abort(), DRAIN_MS).unref()
      done()
    },
    message: () => {},
    ended: end => {
      clearTimeout(drain)
      if (end.kind === 'refused') link.log.debug({ what, status: end.status, text: end.text }, 'the server refused it')
      else if (end.kind === 'failed') link.log.debug({ what, reason: end.failure.text }, 'it did not reach the server')
      done()
    },
  }
  const { target, responseTimeouts, maxBytes } = link
  const body = pieces.length > 0 ? join(pieces) : null
  const sending = link.http.send(
    { method, target, headers, body, responseTimeouts },
    new ResponseReader(reader, maxBytes),
  )
}
