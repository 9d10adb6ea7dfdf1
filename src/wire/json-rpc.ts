import { Json, type Rival } from './json/json.ts'

/** A JSON-RPC error object. */
export interface ErrorObject {
  readonly code: number
  readonly message: string
  readonly data?: Json | undefined
}

/** One JSON-RPC 2.0 message; `params` is an object, Json.empty where the message had none. */
export type Message =
  | { readonly kind: 'request'; readonly id: Json; readonly method: string; readonly params: Json }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Json }
  | { readonly kind: 'response'; readonly id: Json; readonly result: Json }
  | { readonly kind: 'error'; readonly id: Json | undefined; readonly error: ErrorObject } // no id where it was null
  | { readonly kind: 'invalid'; readonly id: Json | undefined; readonly reason: string } // the id, if it can be echoed

/** The content of a body, a line or an event. */
export type Incoming = Message | { readonly kind: 'batch'; readonly messages: Message[] }

const INTERNAL_ERROR = -32603

/** Reads the text of a message or a batch; throws JsonSyntaxError. */
export const readIncoming = (bytes: Buffer): Incoming => {
  const json = Json.parse(bytes)
  if (json.kind !== 'array') return readMessage(json)
  const messages = json.elements().map(readMessage)
  return messages.length > 0 ? { kind: 'batch', messages } : invalid(undefined, 'the batch is empty')
}

/** Classifies one message; never throws. */
const readMessage = (json: Json): Message => {
  if (!json.isObject) return invalid(undefined, `expected an object, got ${json.kind}`)
  const rawId = json.get('id')
  const id = usableId(rawId)
  if (!json.get('jsonrpc')?.isString('2.0')) return invalid(id, 'jsonrpc must be "2.0"')
  const result = json.get('result')
  const error = json.get('error')
  const method = json.get('method')
  if (!method) return readReply(id, result, error)
  if (result || error) return invalid(id, 'method and result or error exclude each other')
  return readCall(json, rawId, id, method)
}

const ENVELOPE: readonly string[] = ['jsonrpc', 'id', 'method', 'params']

const readCall = (json: Json, rawId: Json | undefined, id: Json | undefined, rawMethod: Json): Message => {
  const method = rawMethod.asString()
  if (method === undefined) return invalid(id, 'method must be a string')
  const ambiguous = json.findAmbiguous(ENVELOPE)
  if (ambiguous) return invalid(id, ambiguityError(ambiguous))
  const given = json.get('params')
  // Some serialisers write null for absent members.
  const params = given === undefined || given.kind === 'null' ? Json.empty : given
  if (!params.isObject) return invalid(id, `params must be an object, got ${params.kind}`)
  if (!rawId) return { kind: 'notification', method, params }
  if (!id) return invalid(undefined, `id must be a string or an integer, got ${rawId.kind}`)
  if (isFraction(id)) return invalid(id, 'id must be a string or an integer, got a fraction')
  return { kind: 'request', id, method, params }
}

/** The error message for a member that some servers confuse with another. */
export const ambiguityError = ({ member, lookalike: rival }: Rival): string =>
  rival === member
    ? `"${member}" is written twice; send it once`
    : `some servers take ${JSON.stringify(rival)} for "${member}"; send only "${member}"`

/** A member that is null beside the other one is how JSON-RPC 1.0 writes "absent". */
const readReply = (id: Json | undefined, result: Json | undefined, error: Json | undefined): Message => {
  const failed = error && error.kind !== 'null'
  if (failed && (!result || result.kind === 'null')) return { kind: 'error', id, error: readError(error) }
  if (failed) return invalid(id, 'result and error exclude each other')
  if (!result) return invalid(id, 'neither method, result nor error')
  if (!id) return invalid(undefined, 'a result needs the id of its request')
  if (result.kind === 'null') return { kind: 'response', id, result: Json.empty }
  return result.isObject
    ? { kind: 'response', id, result }
    : invalid(id, `result must be an object, got ${result.kind}`)
}

/** Accepts any value as an error; what does not fit becomes its data. */
const readError = (error: Json): ErrorObject => {
  const code = readCode(error.get('code'))
  const message = error.asString() ?? error.get('message')?.asString()
  const fits = code !== undefined && message !== undefined
  const data = error.get('data') ?? (fits ? undefined : error)
  return { code: code ?? INTERNAL_ERROR, message: message ?? 'Unknown error', data }
}

const readCode = (code: Json | undefined): number | undefined => {
  const text = code?.asString()
  const number = text !== undefined && /^-?\d+$/.test(text) ? Number(text) : code?.asNumber()
  return Number.isSafeInteger(number) ? number : undefined
}

const invalid = (id: Json | undefined, reason: string): Message => ({ kind: 'invalid', id, reason })

const usableId = (id: Json | undefined): Json | undefined =>
  id?.kind === 'string' || id?.kind === 'number' ? id : undefined

const isFraction = (id: Json): boolean => {
  const number = id.asNumber()
  return number !== undefined && Number.isFinite(number) && !Number.isInteger(number)
}

/** A map key for an id: `1` and `"1"` differ, `1` and `1.0` do not. */
export const idKey = (id: Json): string => {
  const text = id.asString()
  if (text !== undefined) return `"${text}`
  const number = id.asNumber()
  return Number.isSafeInteger(number) ? String(number) : id.toString()
}

const CLOSE = Buffer.from('}')

/** A request; params that are Json.empty are left out. */
export const encodeRequest = (id: Json | number | string, method: string, params: Json): Buffer[] =>
  callPieces(`{"jsonrpc":"2.0","id":${idText(id)},"method":${JSON.stringify(method)}`, params)

/** A notification; params that are Json.empty are left out. */
export const encodeNotification = (method: string, params: Json): Buffer[] =>
  callPieces(`{"jsonrpc":"2.0","method":${JSON.stringify(method)}`, params)

/** The result response to a request. */
export const encodeResult = (id: Json | number | string, result: Json): Buffer[] =>
  wrap(`{"jsonrpc":"2.0","id":${idText(id)},"result":`, result, CLOSE)

/** The error response to a request, or to a message without a usable id. */
export const encodeError = (id: Json | number | string | undefined, error: ErrorObject): Buffer[] => {
  const head = `{"jsonrpc":"2.0","id":${id === undefined ? 'null' : idText(id)},"error":{"code":${error.code},"message":${JSON.stringify(error.message)}`
  return error.data ? wrap(`${head},"data":`, error.data, CLOSE_BOTH) : [Buffer.from(`${head}}}`)]
}

/**
 * A body as the text of its bytes, one character for each. That takes no buffers to build, and none to write: Node.js copies
 * up to 16 KiB of text, with the headers, straight into the system call.
 */
export type ByteText = string
const LONGEST_TEXT = 15 * 1024 // bytes; above, copying it several times costs more
const NOT_ASCII = /[^\0-\x7f]/

/** A request as the body of one HTTP request. */
export const requestBody = (id: number, method: string, params: Json): Buffer | ByteText => {
  if (params.size > LONGEST_TEXT) return joinBuffers(encodeRequest(id, method, params))
  const head = `{"jsonrpc":"2.0","id":${id},"method":${byteText(JSON.stringify(method))}`
  return params === Json.empty ? `${head}}` : `${head},"params":${params.toByteText()}}`
}

/** The result response to a request as the body of one HTTP response. */
export const resultBody = (id: Json, result: Json): Buffer[] | ByteText => {
  if (result.size > LONGEST_TEXT || id.size > LONGEST_TEXT) return encodeResult(id, result)
  return `{"jsonrpc":"2.0","id":${id.toByteText()},"result":${result.toByteText()}}`
}

const byteText = (text: string): ByteText => (NOT_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text)

/** The response to a request, whatever it says. */
export const encodeAnswer = (
  id: Json,
  answer: { readonly kind: 'result'; readonly result: Json } | { readonly kind: 'error'; readonly error: ErrorObject },
): Buffer[] => (answer.kind === 'result' ? encodeResult(id, answer.result) : encodeError(id, answer.error))

const CLOSE_BOTH = Buffer.from('}}')

const callPieces = (head: string, params: Json): Buffer[] =>
  params === Json.empty ? [Buffer.from(`${head}}`)] : wrap(`${head},"params":`, params, CLOSE)

const wrap = (head: string, value: Json, tail: Buffer): Buffer[] => {
  const pieces: Buffer[] = [Buffer.from(head)]
  value.appendTo(pieces)
  pieces.push(tail)
  return pieces
}

const idText = (id: Json | number | string): string =>
  typeof id === 'number' ? `${id}` : typeof id === 'string' ? JSON.stringify(id) : id.toString()

/** One buffer; a single one is not copied. */
export const joinBuffers = (pieces: readonly Buffer[]): Buffer => {
  const [only] = pieces
  return only && pieces.length === 1 ? only : Buffer.concat(pieces)
}
