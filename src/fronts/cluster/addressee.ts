import type { IncomingMessage } from 'node:http'
import { readQuery } from '../http/request-url.ts'

const MESSAGE_PATH = /^\/messages?\/?(?:\?|$)/

/** Whether a request is a message for an HTTP+SSE channel, whose id is in the query and not in a header. */
export const isMessagePath = ({ url = '' }: Pick<IncomingMessage, 'url'>): boolean => MESSAGE_PATH.test(url)

/**
 * The session or channel that a request is for; undefined if it names none. A retry of a parked question names its home
 * in the `requestState` of its body, which is not read here.
 */
export const addresseeOf = (request: Pick<IncomingMessage, 'headers' | 'url'>): string | undefined => {
  if (isMessagePath(request)) return channelInQuery(request)
  const inHeader = request.headers['mcp-session-id']
  return typeof inHeader === 'string' ? inHeader : undefined
}

/** The channel that a POST to an HTTP+SSE endpoint is for. */
export const channelInQuery = (request: Pick<IncomingMessage, 'url'>): string | undefined => {
  const query = readQuery(request)
  return query.get('session_id') || query.get('sessionId') || undefined
}
