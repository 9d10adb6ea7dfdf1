import { isModern, OLDEST } from '../../../../protocol/revisions.ts'
import { stringifyExact } from '../../../exact-json.ts'
import { initializeParams, requestHeaders, requestMessage } from '../../../mcp/envelope.ts'
import type { JsonObject } from '../../../mcp/messages.ts'
import { NOTICE } from '../../../mcp/notices.ts'
import { type CopiedRequest, TOKEN_VARIABLE } from './copied-request.ts'
import { commandLines, quoteWithVariables, quoteWord } from './shell-quote.ts'

/** The message of a request as JSON-RPC, as this revision sends it. */
export const jsonRpcText = (request: CopiedRequest): string => stringifyExact(messageOf(request, 1), '  ')

const messageOf = (request: CopiedRequest, id: number): JsonObject => requestMessage({ ...request, id })

const header = (name: string, value: string): string => `-H ${quoteWord(`${name}: ${value}`)}`

const post = (request: CopiedRequest, method: string, message: JsonObject, more: readonly string[] = []): string =>
  commandLines(
    `curl -sN ${quoteWord(request.url)}`,
    ...Object.entries(requestHeaders({ ...request, method, params: request.params })).map(([name, value]) =>
      header(name, value),
    ),
    ...token(request),
    ...more,
    `-d ${quoteWord(stringifyExact(message))}`,
  )

const token = ({ needsToken }: CopiedRequest): string[] =>
  needsToken ? [`-H ${quoteWithVariables(`authorization: Bearer $${TOKEN_VARIABLE}`)}`] : []

/** Sets the level of log messages in a session, as the page does; a server without them rejects it. */
const levelMessage = (request: CopiedRequest): JsonObject =>
  requestMessage({ ...request, method: 'logging/setLevel', params: { level: request.logLevel }, id: 2 })

/** The request as curl. Revisions with a session need a handshake before it, and end the session after it. */
export const curlCommand = (request: CopiedRequest): string => {
  const { revision, method } = request
  if (isModern(revision)) return post(request, method, messageOf(request, 1))
  const handshake = requestMessage({
    ...request,
    method: 'initialize',
    params: initializeParams(revision, request),
    id: 1,
  })
  const session = `-H ${quoteWithVariables('mcp-session-id: $SESSION')}`
  const open = post(request, 'initialize', handshake, ['-D -', '-o /dev/null'])
  const end = commandLines(`curl -s -X DELETE ${quoteWord(request.url)}`, session, ...token(request))
  return [
    ...(revision === OLDEST
      ? [`# ${revision} over Streamable HTTP: curl cannot read the channel of HTTP+SSE and post to it`]
      : []),
    `SESSION=$(${open} | tr -d '\\r' | sed -n 's/^mcp-session-id: //Ip')`,
    post(request, '', { jsonrpc: '2.0', method: NOTICE.initialized }, [session]),
    post(request, '', levelMessage(request), [session, '-o /dev/null']),
    post(request, method, messageOf(request, 3), [session]),
    end,
  ].join('\n')
}
