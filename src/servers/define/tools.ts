import { RpcFailure } from '../../protocol/errors.ts'
import { checkParamHeaders, mirrorsParams, readParamHeaders } from '../../protocol/param-headers.ts'
import { Json, type Plain, type PlainObject } from '../../wire/json/json.ts'
import { argumentsOf, type Call, textParam } from './call.ts'
import { type Block, text } from './content.ts'
import { failure, messageOf } from './failures.ts'
import type { ItemList } from './item-list.ts'
import { type ArgumentsOf, checkArguments, type ObjectSchema } from './schema.ts'
import type { ToolTask } from './tasks.ts'

/** What a tool may return: text, content blocks, members of a result, or a whole result. */
export type ToolOutput =
  | string
  | readonly Block[]
  | {
      readonly content?: readonly Block[]
      readonly structuredContent?: Plain
      readonly isError?: boolean
      readonly _meta?: PlainObject
    }
  | Json

interface ToolSpec<S> {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly input?: S // none: no arguments
  readonly output?: PlainObject
  readonly annotations?: PlainObject
  readonly _meta?: PlainObject
  readonly task?: ToolTask // runs as a task from its first line; undefined: only where it says so itself
  readonly run: (args: ArgumentsOf<S>, call: Call) => ToolOutput | Promise<ToolOutput>
}

/** A declared tool. */
export interface Tool {
  readonly name: string
  readonly description: Json
  readonly schema: Json
  readonly check: (args: unknown) => string | undefined
  readonly task?: ToolTask | undefined
  readonly run: (args: unknown, call: Call) => ToolOutput | Promise<ToolOutput>
}

const NO_ARGUMENTS: ObjectSchema = { type: 'object', properties: {} }

/** Declares a tool. The types of its arguments follow from the schema; a call's arguments are checked against it. */
export const tool = <const S extends ObjectSchema>(spec: ToolSpec<S>): Tool => {
  const { name, title, description, input, output, annotations, _meta } = spec
  const schema = Json.of(input ?? NO_ARGUMENTS)
  const headers = readParamHeaders(schema)
  if (headers.kind === 'invalid') throw new Error(`Tool ${name}: ${headers.reason}`)
  const plain = schema.toValue()
  return {
    name,
    description: Json.of({ name, title, description, inputSchema: schema, outputSchema: output, annotations, _meta }),
    schema,
    check: args => checkArguments(plain, args),
    task: spec.task,
    run: spec.run as Tool['run'],
  }
}

/** Answers tools/call. An error a tool throws becomes a result with `isError`, which the model can read. */
export const callTool = async (tools: ItemList<Tool>, call: Call): Promise<Json> => {
  const name = textParam(call.params, 'name')
  const found = tools.find(name)
  if (!found) throw failure('invalidParams', `Unknown tool: ${name}`)
  const args = checkedArguments(found, call)
  if (found.task) call.becomeTask(found.task)
  try {
    return toResult(await found.run(args, call))
  } catch (error) {
    if (error instanceof RpcFailure) throw error
    return Json.of({ content: [text(messageOf(error))], isError: true })
  }
}

const checkedArguments = (found: Tool, { params, caller }: Call): unknown => {
  const json = argumentsOf(params)
  const mismatch = mirrorsParams(caller) ? checkParamHeaders(found.schema, json, caller.headers) : undefined
  if (mismatch) throw failure('headerMismatch', mismatch)
  const args = json.toValue()
  const reason = found.check(args)
  if (reason) throw failure('invalidParams', `${found.name}: ${reason}`)
  return args
}

const toResult = (output: ToolOutput): Json => {
  if (output instanceof Json) return output
  if (typeof output === 'string') return Json.of({ content: [text(output)] })
  if (Array.isArray(output)) return Json.of({ content: output as readonly Block[] })
  const { content, structuredContent, isError, _meta } = output as Exclude<ToolOutput, string | readonly Block[] | Json>
  // Clients that do not read structured content get it as text.
  const blocks = content ?? (structuredContent === undefined ? [] : [text(Json.of(structuredContent).toString())])
  return Json.of({ content: blocks, structuredContent, isError, _meta })
}
