import type { Link } from './link.ts'
import type { Reader } from './reply.ts'

/** Reads the reply to something that has no answer (a notification, a response): only a refusal is worth a line. */
export const forgetful = (link: Link, what: string, done: () => void = () => {}): Reader => ({
  message: () => {},
  ended: end => {
    if (end.kind === 'refused') link.log.debug({ what, status: end.status }, 'the server refused it')
    else if (end.kind === 'lost') link.log.debug({ what, reason: end.loss.text }, 'it did not reach the server')
    done()
  },
})
