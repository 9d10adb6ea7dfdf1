import type { RpcError } from '../protocol/errors.ts'
import { REVISIONS, type Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { difference as d20241105 } from './2024-11-05.ts'
import { difference as d20250326 } from './2025-03-26.ts'
import { difference as d20250618 } from './2025-06-18.ts'
import { difference as d20251125 } from './2025-11-25.ts'
import type { Converters, ErrorAsResult, InvalidAnswer, RejectedQuestion, RevisionDifference } from './difference.ts'

/** Oldest first: entry i is between REVISIONS[i] and REVISIONS[i + 1]. */
const CHAIN: readonly RevisionDifference[] = [d20241105, d20250326, d20250618, d20251125]

const stepsBetween = (a: number, b: number): readonly Converters[] =>
  a <= b
    ? CHAIN.slice(a, b).map(({ up }) => up)
    : CHAIN.slice(b, a)
        .reverse()
        .map(({ down }) => down)

const STEPS: ReadonlyMap<Revision, ReadonlyMap<Revision, readonly Converters[]>> = new Map(
  REVISIONS.map((from, a) => [from, new Map(REVISIONS.map((to, b) => [to, stepsBetween(a, b)]))]),
)

/** The conversions between two revisions, in order. */
const stepsOf = (from: Revision, to: Revision): readonly Converters[] => STEPS.get(from)?.get(to) ?? []

type Payload = 'params' | 'result' | 'notice'

const converterOf =
  (what: Payload) =>
  (method: string, payload: Json, from: Revision, to: Revision): Json => {
    if (from === to || !payload.isObject) return payload
    let value = payload
    for (const step of stepsOf(from, to)) value = step[what]?.(method, value) ?? value
    return value
  }

/** Params of a client's request or notification, from the client's revision to the server's. */
export const convertParams = converterOf('params')

/** A result, from the server's revision to the client's. */
export const convertResult = converterOf('result')

/** Params of a notification of the server, from its revision to the client's. */
export const convertNotice = converterOf('notice')

/** An error, from the server's revision to the client's; `params` and `capabilities` are those of the client. */
export const convertError = (
  method: string,
  error: RpcError,
  params: Json,
  from: Revision,
  to: Revision,
  capabilities: Json = Json.empty,
): RpcError | ErrorAsResult => {
  let ending: RpcError | ErrorAsResult = error
  for (const step of stepsOf(from, to)) {
    if ('code' in ending) ending = step.error?.(method, ending, params, capabilities) ?? ending
    else if (step.result) ending = { result: step.result(method, ending.result) }
  }
  return ending
}

/** Params of a question, from the asking server's revision to the client's; or why it cannot be asked there. */
export const convertQuestion = (
  method: string,
  params: Json,
  from: Revision,
  to: Revision,
): Json | RejectedQuestion => {
  let value = params
  for (const step of stepsOf(from, to)) {
    const converted = step.question?.(method, value) ?? value
    if ('rejection' in converted) return converted
    value = converted
  }
  return value
}

/**
 * The result a client gave to a question, from the client's revision to the server's; or why it must be asked again.
 * `question` are the params as the server wrote them.
 */
export const convertAnswer = (
  method: string,
  result: Json,
  question: Json,
  from: Revision,
  to: Revision,
): Json | InvalidAnswer => {
  if (from === to || !result.isObject) return result
  let value = result
  for (const step of stepsOf(from, to)) {
    const converted = step.answer?.(method, value, question) ?? value
    if ('problem' in converted) return converted
    value = converted
  }
  return value
}
