import type { Question } from '../../protocol/exchange.ts'
import type { Json } from '../../wire/json/json.ts'

const ELICITATION = 'elicitation/create'

/** Says who asks: the person asked sees one server only, the gateway. */
const signed = (params: Json, server: string): Json => {
  const message = params.get('message')?.asString()
  return message === undefined ? params : params.with('message', `[${server}] ${message}`)
}

/** A live question of a member, with its name. */
export const withServerName = (question: Question, server: string): Question =>
  question.method === ELICITATION ? { ...question, params: signed(question.params, server) } : question

/** A result that asks, with the member's name in each of its questions; any other result as it is. */
export const withServerNames = (result: Json, server: string): Json => {
  const asked = result.get('resultType')?.isString('input_required') ? result.get('inputRequests') : undefined
  if (!asked?.isObject) return result
  const all = asked.entries().reduce((requests, [key, request]) => {
    const params = request.get('method')?.isString(ELICITATION) ? request.get('params') : undefined
    return params?.isObject ? requests.with(key, request.with('params', signed(params, server))) : requests
  }, asked)
  return result.with('inputRequests', all)
}
