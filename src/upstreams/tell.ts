import { join } from '../wire/json-rpc.ts'
import type { Link } from './link.ts'
import { type Reader, Reply } from './reply.ts'

/** Sends something that has no answer (a notification, a response, the end of a session); only a refusal is worth a line. */
export const tell = (
  link: Link,
  method: 'POST' | 'DELETE',
  headers: readonly string[],
  pieces: readonly Buffer[],
  what: string,
  done: () => void = () => {},
): void => {
  const reader: Reader = {
    message: () => {},
    ended: end => {
      if (end.kind === 'refused') link.log.debug({ what, status: end.status }, 'the server refused it')
      else if (end.kind === 'lost') link.log.debug({ what, reason: end.loss.text }, 'it did not reach the server')
      done()
    },
  }
  const { target, patience, maxBytes } = link
  const body = pieces.length > 0 ? join(pieces) : null
  link.http.send({ method, target, headers, body, patience }, new Reply(reader, maxBytes))
}
