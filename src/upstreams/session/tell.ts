import { join } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import type { Link } from '../http/link.ts'
import { type Reader, Reply } from '../http/reply.ts'

const DRAIN_MS = 1000 // for a stream nobody asked for to end by itself

/** Sends something that has no answer (a notification, a response, the end of a session); only a refusal is worth a line. */
export const tell = (
  link: Link,
  method: 'POST' | 'DELETE',
  headers: readonly string[],
  pieces: readonly Buffer[],
  what: string,
  done: () => void = () => {},
): void => {
  let drain: NodeJS.Timeout | undefined
  const reader: Reader = {
    began: (status, headers) => {
      // It was taken; some servers open a stream for it all the same, and a stream need not end.
      if (status >= 300 || !isEventStream(headers['content-type'])) return
      drain = setTimeout(() => sending.abort(), DRAIN_MS).unref()
      done()
    },
    message: () => {},
    ended: end => {
      clearTimeout(drain)
      if (end.kind === 'refused') link.log.debug({ what, status: end.status, text: end.text }, 'the server refused it')
      else if (end.kind === 'lost') link.log.debug({ what, reason: end.loss.text }, 'it did not reach the server')
      done()
    },
  }
  const { target, patience, maxBytes } = link
  const body = pieces.length > 0 ? join(pieces) : null
  const sending = link.http.send({ method, target, headers, body, patience }, new Reply(reader, maxBytes))
}
