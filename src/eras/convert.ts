import type { RpcError } from '../protocol/errors.ts'
import { REVISIONS, type Revision } from '../protocol/revisions.ts'
import type { Json } from '../wire/json.ts'
import { difference as d20241105 } from './2024-11-05.ts'
import { difference as d20250326 } from './2025-03-26.ts'
import { difference as d20250618 } from './2025-06-18.ts'
import { difference as d20251125 } from './2025-11-25.ts'
import type { Difference } from './difference.ts'

/** Oldest first: entry i lies between REVISIONS[i] and REVISIONS[i + 1]. */
const CHAIN: readonly Difference[] = [d20241105, d20250326, d20250618, d20251125]

type Payload = 'params' | 'result' | 'notice' | 'question' | 'answer'

/** The steps between two revisions in walking order, and the direction to take each in. */
const steps = (from: Revision, to: Revision): readonly [readonly Difference[], 'up' | 'down'] => {
  const [a, b] = [REVISIONS.indexOf(from), REVISIONS.indexOf(to)]
  return a <= b ? [CHAIN.slice(a, b), 'up'] : [CHAIN.slice(b, a).reverse(), 'down']
}

const convert = (what: Payload, method: string, payload: Json, from: Revision, to: Revision): Json => {
  if (from === to) return payload
  const [chain, direction] = steps(from, to)
  return chain.reduce((value, step) => step[what]?.[direction]?.(method, value) ?? value, payload)
}

/** Params of a client's request or notification, from the client's revision to the server's. */
export const convertParams = (method: string, params: Json, from: Revision, to: Revision): Json =>
  convert('params', method, params, from, to)

/** A result, from the server's revision to the client's. */
export const convertResult = (method: string, result: Json, from: Revision, to: Revision): Json =>
  convert('result', method, result, from, to)

/** Params of a notification of the server, from its revision to the client's. */
export const convertNotice = (method: string, params: Json, from: Revision, to: Revision): Json =>
  convert('notice', method, params, from, to)

/** Params of a question, from the asking server's revision to the client's. */
export const convertQuestion = (method: string, params: Json, from: Revision, to: Revision): Json =>
  convert('question', method, params, from, to)

/** The result a client gave to a question, from the client's revision to the server's. */
export const convertAnswer = (method: string, result: Json, from: Revision, to: Revision): Json =>
  convert('answer', method, result, from, to)

/** An error, from the server's revision to the client's; `params` are those of the request. */
export const convertError = (method: string, error: RpcError, params: Json, from: Revision, to: Revision): RpcError => {
  if (from === to) return error
  const [chain, direction] = steps(from, to)
  return chain.reduce((value, step) => step.error?.[direction]?.(method, value, params) ?? value, error)
}
