import type { IncomingMessage } from 'node:http'

/** The query parameters of a request. */
export const readQuery = ({ url = '' }: Pick<IncomingMessage, 'url'>): URLSearchParams => {
  const at = url.indexOf('?')
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1))
}
