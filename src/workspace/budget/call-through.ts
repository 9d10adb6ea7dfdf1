import { ERRORS, type RpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { createParamHeaders } from '../../protocol/param-headers.ts'
import { isModern } from '../../protocol/revisions.ts'
import { signatureOf } from '../../protocol/schema-text.ts'
import { Json } from '../../wire/json/json.ts'
import type { ListItem, MergedList } from '../catalog/merged-list.ts'
import { isAnnotated } from '../routing/call-headers.ts'
import { rejectParams } from '../routing/send.ts'
import { argumentProblem } from './check-arguments.ts'
import { nearestNames } from './nearest-names.ts'

/**
 * Serves `call_tool`: the request becomes the call of the tool that its arguments name, and takes the ordinary route. Only
 * errors that the model can correct are explained.
 */
export const callThrough = (exchange: Exchange, list: MergedList, route: Dispatch): void => {
  const given = exchange.params.get('arguments')
  const name = given?.get('name')?.asString()
  if (name === undefined)
    return rejectParams(exchange, '`name` must be the name of a tool, and `arguments` an object with its arguments')
  const inner = given?.get('arguments')
  const args = inner?.kind === 'null' ? undefined : inner
  const found = list.find(name)
  const item = found && !('candidates' in found) ? found : undefined
  if (args && !args.isObject)
    return rejectParams(exchange, `\`arguments\` must be an object${item ? `: ${signature(item)}` : ''}`)
  const named = exchange.params.with('name', name)
  const call: Exchange = {
    ...exchange,
    params: args ? named.with('arguments', args) : named.without('arguments'),
    caller: item && args ? withMirroredArguments(exchange.caller, item, args) : exchange.caller,
    sink: frame => exchange.sink(explain(frame, { name, args: args ?? Json.empty, item, isKnown: !!found, list })),
  }
  exchange.record?.calls?.(call)
  route(call)
}

const signature = ({ exposed, definition }: ListItem): string =>
  signatureOf(exposed, definition.get('inputSchema') ?? Json.empty)

/** The client cannot repeat arguments in headers as the tool's schema asks for: it has not seen the schema. */
const withMirroredArguments = (caller: Caller, { definition }: ListItem, args: Json): Caller => {
  if (!isModern(caller.revision) || !isAnnotated(definition)) return caller
  const mirrored = createParamHeaders(definition.get('inputSchema') ?? Json.empty, args)
  return { ...caller, headers: new Map([...caller.headers, ...mirrored]) }
}

interface ThroughCall {
  readonly name: string
  readonly args: Json
  readonly item: ListItem | undefined
  readonly isKnown: boolean // the name is listed, maybe several times
  readonly list: MergedList
}

const explain = (frame: Frame, call: ThroughCall): Frame => {
  if (frame.kind === 'failure') return { kind: 'failure', error: explainError(frame.error, call) }
  return frame.kind === 'result' ? { kind: 'result', result: explainResult(frame.result, call) } : frame
}

const explainError = (error: RpcError, { name, item, isKnown, list }: ThroughCall): RpcError => {
  if (error.code !== ERRORS.invalidParams.code) return error
  if (item) return { ...error, message: `${error.message}. Signature: ${signature(item)}` }
  if (isKnown) return error // several servers have it, and the message names them
  const near = nearestNames(list, name)
  const hint = near.length > 0 ? `Did you mean ${near.join(', ')}?` : 'Find the name of a tool with search_tools'
  return { ...error, message: `${error.message}. ${hint}` }
}

/** Most servers report wrong arguments as the result of the tool. */
const explainResult = (result: Json, { args, item }: ThroughCall): Json => {
  const content = result.get('content')
  const schema = item?.definition.get('inputSchema')
  if (!item || !schema || content?.kind !== 'array' || result.get('isError')?.asBoolean() !== true) return result
  const problem = argumentProblem(schema, args)
  if (problem === undefined) return result
  const text = `Arguments ${problem}. Signature: ${signature(item)}`
  return result.with('content', Json.of([...content.elements(), { type: 'text', text }]))
}
