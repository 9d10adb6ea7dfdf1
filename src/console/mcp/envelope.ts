import { META } from '../../protocol/meta.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { isModern, type Revision, transportRulesOf } from '../../protocol/revisions.ts'
import type { JsonObject } from './messages.ts'
import { encodeHeaderValue, mirroredParams } from './mirrored-params.ts'

const clientInfo = (version: string): JsonObject => ({
  name: 'dragoman-console',
  title: 'Dragoman console',
  version,
})

/** The content types that every POST accepts. */
const ACCEPT = 'application/json, text/event-stream'

export interface EnvelopeOptions {
  readonly revision: Revision
  readonly version: string // of the console
  readonly capabilities: JsonObject // that the client declares
  readonly logLevel?: string | undefined // undefined: debug
  readonly method: string
  readonly params: JsonObject
  readonly id: number
  readonly inputSchema?: unknown
}

/** The headers of a POST, without those of a session or a token. */
export const requestHeaders = ({
  revision,
  method,
  params,
  inputSchema,
}: Omit<EnvelopeOptions, 'id' | 'version' | 'capabilities' | 'logLevel'>) => {
  const headers: Record<string, string> = { accept: ACCEPT, 'content-type': 'application/json' }
  if (transportRulesOf(revision).versionHeader && method !== 'initialize') headers['mcp-protocol-version'] = revision
  if (!isModern(revision)) return headers
  headers['mcp-method'] = method
  const named = methodInfo(method)?.named
  const name = named === undefined ? undefined : params[named]
  if (typeof name === 'string') headers['mcp-name'] = encodeHeaderValue(name)
  return { ...headers, ...mirroredParams(inputSchema, params.arguments) }
}

/** The message of a request: a modern one says in `_meta` who the client is. Progress is asked for under the id. */
export const requestMessage = (options: EnvelopeOptions): JsonObject => {
  const { revision, version, capabilities, logLevel = 'debug', method, params, id } = options
  const given = params._meta as JsonObject | undefined
  const about = isModern(revision)
    ? {
        [META.protocolVersion]: revision,
        [META.clientInfo]: clientInfo(version),
        [META.clientCapabilities]: capabilities,
        [META.logLevel]: logLevel,
      }
    : {}
  const token = hasProgress(method) ? { progressToken: id } : {}
  const meta = { ...given, ...about, ...token }
  const isEmpty = Object.keys(meta).length === 0
  return { jsonrpc: '2.0', id, method, params: isEmpty ? params : { ...params, _meta: meta } }
}

/** Lists and the handshake are answered at once. */
const hasProgress = (method: string): boolean => methodInfo(method)?.asks === true

export const initializeParams = (
  revision: Revision,
  { version, capabilities }: Pick<EnvelopeOptions, 'version' | 'capabilities'>,
): JsonObject => ({
  protocolVersion: revision,
  capabilities,
  clientInfo: clientInfo(version),
})
