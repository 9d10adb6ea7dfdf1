/** One rule of the specification that `dragoman doctor` can see broken from outside. */
export interface Rule {
  readonly level: 'must' | 'should'
  readonly text: string // what the specification asks of a server
  readonly section: string // after https://modelcontextprotocol.io/specification/
}

const must = (text: string, section: string): Rule => ({ level: 'must', text, section })
const should = (text: string, section: string): Rule => ({ level: 'should', text, section })

const HTTP_2025 = '2025-11-25/basic/transports'
const HTTP_2026 = '2026-07-28/basic/transports/streamable-http'
const BASE = '2026-07-28/basic'

/** Every rule by its name, which `--json` prints; names stay. */
export const RULES = {
  // Messages
  'json-rpc': must('every message is a JSON-RPC 2.0 message', BASE),
  'response-id': must('a response has the id of its request, in value and type', BASE),
  'error-code': must('an error has an integer code and a message', BASE),
  'unknown-method': should('an unknown method is answered with error -32601', BASE),
  'answers-requests': must('every request is answered', BASE),
  'result-type': must('every result names its resultType', BASE),

  // Handshake
  'initialize-result': must(
    'the result of initialize has protocolVersion, capabilities and serverInfo with name and version',
    '2025-11-25/basic/lifecycle#initialization',
  ),
  handshake: must('initialize is answered with a result', '2025-11-25/basic/lifecycle#initialization'),
  'version-offer': must(
    'a server that does not know the requested version offers one that it supports',
    '2025-11-25/basic/lifecycle#version-negotiation',
  ),
  'discover-result': must(
    'the result of server/discover has supportedVersions and capabilities',
    '2026-07-28/server/discover#discoverresult',
  ),
  'server-info': should('results name the server in _meta', '2026-07-28/server/discover#discoverresult'),
  ping: must('ping is answered with an empty result', '2025-11-25/basic/utilities/ping'),

  // Streamable HTTP
  'content-type': must(
    'a request is answered as application/json or text/event-stream',
    `${HTTP_2025}#sending-messages-to-the-server`,
  ),
  'notification-accepted': must(
    'a notification is answered with 202 and no body',
    `${HTTP_2025}#sending-messages-to-the-server`,
  ),
  'parse-error': should('a body that is not JSON is answered with 400', `${HTTP_2025}#sending-messages-to-the-server`),
  'get-stream': must(
    'GET is answered with text/event-stream or 405',
    `${HTTP_2025}#listening-for-messages-from-the-server`,
  ),
  'session-id': must('a session id has only visible ASCII characters', `${HTTP_2025}#session-management`),
  'session-required': should(
    'a request without the session id is answered with 400',
    `${HTTP_2025}#session-management`,
  ),
  'session-unknown': must(
    'a request with an ended or unknown session id is answered with 404',
    `${HTTP_2025}#session-management`,
  ),
  'version-header': must(
    'an unsupported MCP-Protocol-Version header is answered with 400',
    `${HTTP_2025}#protocol-version-header`,
  ),
  origin: must('a request with a foreign Origin is answered with 403', `${HTTP_2025}#security-warning`),
  'unsupported-version': must(
    'an unsupported version is answered with 400 and error -32022',
    `${HTTP_2026}#protocol-version-header`,
  ),
  'unknown-method-status': must(
    'an unknown method is answered with 404 and error -32601',
    `${HTTP_2026}#protocol-version-header`,
  ),
  'header-required': must(
    'a request without Mcp-Method is answered with 400 and error -32020',
    `${HTTP_2026}#server-validation`,
  ),
  'header-mismatch': must(
    'an Mcp-Method that differs from the body is answered with 400 and error -32020',
    `${HTTP_2026}#server-validation`,
  ),
  'meta-required': must('a request without its _meta fields is answered with 400 and error -32602', `${BASE}#meta`),

  // HTTP+SSE
  'endpoint-event': must('the stream begins with an endpoint event', '2024-11-05/basic/transports#http-with-sse'),

  // stdio
  'stdout-only-messages': must('stdout has nothing but messages', `${BASE}/transports/stdio`),
  'exits-with-stdin': should('the process exits soon after its stdin was closed', `${BASE}/transports/stdio#shutdown`),

  // Authorization
  challenge: must('a 401 response has a WWW-Authenticate header', `${BASE}/authorization`),
  'resource-metadata': must('a server that asks for OAuth has protected resource metadata', `${BASE}/authorization`),

  // Lists
  'list-answered': must('the lists of declared capabilities are answered', '2026-07-28/server/tools#capabilities'),
  'list-items': must('a list result has an array of items', '2026-07-28/server/tools#listing-tools'),
  'cursor-repeats': must('a cursor leads to another page', '2026-07-28/server/utilities/pagination'),
  'cursor-invalid': should(
    'an invalid cursor is answered with error -32602',
    '2026-07-28/server/utilities/pagination#error-handling',
  ),
  'cache-hints': must('list results have ttlMs and cacheScope', '2026-07-28/server/utilities/caching'),
  'tool-name': should(
    'tool names have 1 to 128 of the characters A-Z a-z 0-9 _ - .',
    '2026-07-28/server/tools#tool-names',
  ),
  'unique-names': should('names in a list are unique', '2026-07-28/server/tools#tool-names'),
  'input-schema': must('a tool has an inputSchema of type object', '2026-07-28/server/tools#tool'),
  'output-schema': must('an outputSchema is a JSON Schema object', '2026-07-28/server/tools#tool'),
  'param-headers': must('x-mcp-header is used as the specification allows', `${HTTP_2026}#schema-extension`),
  'item-name': must('every prompt, resource and template has a name', '2026-07-28/server/resources#data-types'),
  'resource-uri': must('a resource has an absolute URI', '2026-07-28/server/resources#data-types'),
  'unknown-tool': must('calling an unknown tool fails', '2026-07-28/server/tools#error-handling'),
  'unknown-prompt': should(
    'getting an unknown prompt is answered with error -32602',
    '2026-07-28/server/prompts#error-handling',
  ),
  'unknown-resource': should(
    'reading an unknown resource is answered with an error',
    '2026-07-28/server/resources#error-handling',
  ),
} as const satisfies Record<string, Rule>

export type RuleName = keyof typeof RULES
