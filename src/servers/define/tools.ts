import { RpcFailure } from '../../protocol/errors.ts'
import { checkParamHeaders, mirrorsParams, readParamHeaders } from '../../protocol/param-headers.ts'
import { Json, type Plain, type PlainObject } from '../../wire/json/json.ts'
import type { Call } from './call.ts'
import { type Block, text } from './content.ts'
import { failure, messageOf } from './failures.ts'
import { argumentsOf, type Catalogue, textMember } from './listed.ts'
import { type ArgumentsOf, checkArguments, type ObjectSchema } from './schema.ts'

/** What a tool may give back: words, pieces, a result in parts, or a result written by hand. */
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
  readonly run: (args: ArgumentsOf<S>, call: Call) => ToolOutput | Promise<ToolOutput>
}

/** A tool as a server holds it. */
export interface Tool {
  readonly name: string
  readonly description: Json
  readonly schema: Json
  readonly check: (args: unknown) => string | undefined
  readonly run: (args: unknown, call: Call) => ToolOutput | Promise<ToolOutput>
}

const NO_ARGUMENTS: ObjectSchema = { type: 'object', properties: {} }

/** Declares a tool. The types of its arguments follow from the schema, and the schema is checked before it runs. */
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
    run: spec.run as Tool['run'],
  }
}

/** Answers tools/call. A tool that throws has failed, the call has not: its words are for the model to read. */
export const callTool = async (tools: Catalogue<Tool>, call: Call): Promise<Json> => {
  const name = textMember(call.params, 'name')
  const found = tools.find(name)
  if (!found) throw failure('invalidParams', `Unknown tool: ${name}`)
  const args = checkedArguments(found, call)
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
  // Whoever does not read structured content still finds it as text.
  const spoken = content ?? (structuredContent === undefined ? [] : [text(Json.of(structuredContent).toString())])
  return Json.of({ content: spoken, structuredContent, isError, _meta })
}
