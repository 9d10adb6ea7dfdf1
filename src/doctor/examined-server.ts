import { Json, type Plain } from '../wire/json/json.ts'
import { JsonSyntaxError } from '../wire/json/scan.ts'
import type { Deviations } from './deviations.ts'
import type { DoctorTransport } from './report.ts'

/** The answer to one request. */
export type DoctorReply =
  | { readonly kind: 'result'; readonly result: Json; readonly ms: number; readonly status?: number }
  | {
      readonly kind: 'error'
      readonly code: number | undefined
      readonly message: string
      readonly data: Json | undefined
      readonly ms: number
      readonly status?: number
    }
  | { readonly kind: 'none'; readonly reason: string; readonly status?: number }

/** A server that was opened in one revision over one transport. */
export interface ExaminedServer {
  readonly transport: DoctorTransport
  readonly revision: string
  readonly where: string // transport and revision, for messages
  readonly opening: Json // the result of initialize or server/discover
  readonly openingMs: number
  readonly hasSession?: boolean
  readonly lacksHandshake?: boolean // it rejects initialize and answers all the same
  request(method: string, params?: Record<string, Plain>): Promise<DoctorReply>
  close(): Promise<void>
}

/** Parses a message; reports what is no JSON-RPC. */
export const readWire = (bytes: Buffer, deviations: Deviations, where: string): Json | undefined => {
  try {
    const json = Json.parse(bytes)
    if (!json.isObject) deviations.add('json-rpc', where, `sent ${quote(json.toString())}`)
    else if (!json.get('jsonrpc')?.isString('2.0'))
      deviations.add('json-rpc', where, `jsonrpc is ${json.get('jsonrpc')?.toString() ?? 'absent'}`)
    return json.isObject ? json : undefined
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    deviations.add('json-rpc', where, `sent what is not JSON: ${quote(bytes.toString('utf8'))}`)
    return undefined
  }
}

/** Whether a message answers the request of that id. An id of another type counts, and is reported. */
export const isReplyTo = (message: Json, id: number | string, deviations: Deviations, where: string): boolean => {
  if (message.has('method')) return false
  const given = message.get('id')
  const isError = message.has('error')
  if (given === undefined || given.kind === 'null') return isError
  if (given.toValue() === id) return true
  if (String(given.toValue()) !== String(id)) return false
  deviations.add('response-id', where, `the id ${JSON.stringify(id)} came back as ${given.toString()}`)
  return true
}

/** Reads the reply out of a message. */
export const readReply = (
  message: Json,
  ms: number,
  deviations: Deviations,
  where: string,
  status?: number,
): DoctorReply => {
  const answered = status === undefined ? { ms } : { ms, status }
  const error = message.get('error')
  if (error && error.kind !== 'null') {
    const code = error.get('code')?.asNumber()
    const text = error.get('message')?.asString()
    if (!Number.isInteger(code) || text === undefined)
      deviations.add('error-code', where, `the error was ${quote(error.toString())}`)
    return { kind: 'error', code, message: text ?? quote(error.toString()), data: error.get('data'), ...answered }
  }
  const result = message.get('result')
  if (result?.isObject) return { kind: 'result', result, ...answered }
  deviations.add('json-rpc', where, `a response without a result object: ${quote(message.toString())}`)
  return { kind: 'none', reason: 'the response has no result', ...(status === undefined ? {} : { status }) }
}

const MOST_QUOTED = 120

/** The beginning of a text, in one line. */
export const quote = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > MOST_QUOTED ? `${line.slice(0, MOST_QUOTED)}…` : line
}

/** A reply in words, for messages. */
export const describeReply = (reply: DoctorReply): string => {
  const status = reply.status === undefined ? '' : `${reply.status}, `
  if (reply.kind === 'none') return `${status}${reply.reason}`
  if (reply.kind === 'result') return `${status}a result`
  return `${status}error ${reply.code ?? '(without a code)'}: ${quote(reply.message)}`
}
