import { isObject, type JsonObject } from '../../../mcp/messages.ts'

// The console as the host of an MCP App: JSON-RPC by `postMessage`, as the extension io.modelcontextprotocol/ui has it.

/** What the app is shown for. */
export interface AppCall {
  readonly version: string // of the console
  readonly theme: 'light' | 'dark'
  readonly args: unknown
  readonly result: JsonObject
}

/** A request of the app that the user decides about. */
export interface AppRequest {
  readonly id: string | number
  readonly method: string
  readonly params: JsonObject
}

/** What follows from a message of the app. */
export type AppStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'send'; readonly messages: readonly JsonObject[] }
  | { readonly kind: 'resize'; readonly height: number }
  | { readonly kind: 'ask'; readonly request: AppRequest }

const LOWEST = 80 // pixels
const HIGHEST = 900
const METHOD_NOT_FOUND = -32601
const REFUSED = -32000
/** What the console does for an app if the user allows it. */
const ASKED: ReadonlySet<string> = new Set(['tools/call', 'resources/read'])
const NONE: AppStep = { kind: 'none' }

const answer = (id: unknown, result: JsonObject): JsonObject => ({ jsonrpc: '2.0', id, result })
const fail = (id: unknown, code: number, message: string): JsonObject => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
})
const tell = (method: string, params: JsonObject): JsonObject => ({ jsonrpc: '2.0', method, params })

export const appResult = ({ id }: AppRequest, result: JsonObject): JsonObject => answer(id, result)
export const appRefusal = ({ id }: AppRequest, message: string): JsonObject => fail(id, REFUSED, message)

/** Reads a message of the app. It comes from a server: every part of it may be anything. */
export const stepFor = (message: unknown, call: AppCall): AppStep => {
  if (!isObject(message) || message.jsonrpc !== '2.0' || typeof message.method !== 'string') return NONE
  const { method } = message
  const params = isObject(message.params) ? message.params : {}
  const { id } = message
  if (typeof id !== 'string' && typeof id !== 'number') return noticed(method, params, call)
  if (method === 'ping') return { kind: 'send', messages: [answer(id, {})] }
  if (method === 'ui/initialize') return { kind: 'send', messages: [answer(id, introduction(params, call))] }
  if (ASKED.has(method)) return { kind: 'ask', request: { id, method, params } }
  const text = `The console does not offer ${method.slice(0, 100)} to apps`
  return { kind: 'send', messages: [fail(id, METHOD_NOT_FOUND, text)] }
}

const introduction = ({ protocolVersion }: JsonObject, { version, theme }: AppCall): JsonObject => ({
  protocolVersion: typeof protocolVersion === 'string' ? protocolVersion : '',
  hostInfo: { name: 'dragoman-console', version },
  hostCapabilities: { serverTools: {}, serverResources: {} },
  hostContext: { theme, displayMode: 'inline', platform: 'web' },
})

const noticed = (method: string, params: JsonObject, { args, result }: AppCall): AppStep => {
  if (method === 'ui/notifications/initialized')
    return {
      kind: 'send',
      messages: [
        tell('ui/notifications/tool-input', { arguments: args }),
        tell('ui/notifications/tool-result', result),
      ],
    }
  if (method !== 'ui/notifications/size-changed' || typeof params.height !== 'number') return NONE
  return { kind: 'resize', height: Math.min(HIGHEST, Math.max(LOWEST, Math.round(params.height) || LOWEST)) }
}

/** The app of a tool, which its definition names; undefined if it has none. */
export const appUriOf = ({ _meta: meta }: JsonObject): string | undefined => {
  if (!isObject(meta)) return undefined
  const uri = isObject(meta.ui) ? meta.ui.resourceUri : meta['ui/resourceUri']
  return typeof uri === 'string' && uri.startsWith('ui://') ? uri : undefined
}

const MOST_CHARACTERS = 5 * 2 ** 20

/** The HTML in the result of `resources/read`; undefined if it is no app, or too large. */
export const appHtmlOf = ({ contents }: JsonObject): string | undefined => {
  const [first] = Array.isArray(contents) ? contents : []
  if (!isObject(first) || !String(first.mimeType).startsWith('text/html')) return undefined
  const text = typeof first.text === 'string' ? first.text : typeof first.blob === 'string' ? decode(first.blob) : ''
  return text === '' || text.length > MOST_CHARACTERS ? undefined : text
}

const decode = (base64: string): string => {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), character => character.charCodeAt(0)))
  } catch {
    return ''
  }
}
