import { Json, type PlainObject } from '../../../wire/json/json.ts'
import type { Call } from '../../define/call.ts'
import { text } from '../../define/content.ts'
import type { Tool, ToolOutput } from '../../define/tools.ts'
import { Refusal } from '../refusal.ts'
import { StoreError } from '../store.ts'
import { type Arguments, ArgumentsError, readArguments, schemaOf, type Values } from './arguments.ts'
import { resultOf, SHAPES, type ShapeName } from './shapes.ts'

/** What a tool does to memory, as hosts like to know before they call it. */
export type Effect = 'reads' | 'adds' | 'changes' | 'destroys'

const ANNOTATIONS: Readonly<Record<Effect, PlainObject>> = {
  reads: { readOnlyHint: true, openWorldHint: false },
  adds: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  changes: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  destroys: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
}

interface Spec<A extends Arguments> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly effect: Effect
  readonly args: A
  /** What a success looks like. */
  readonly success: ShapeName | PlainObject
  /** The whole of the structured content instead of a member `result` of it. */
  readonly bare?: boolean
  readonly run: (args: Values<A>, call: Call) => Promise<PlainObject>
}

/**
 * Declares a tool of the memory contract. Its failures are results that carry `error`, as clients of the contract
 * expect; only arguments that do not fit are errors of the call.
 */
export const memoryTool = <A extends Arguments>(spec: Spec<A>): Tool => {
  const { name, title, description, effect, args } = spec
  const schema = Json.of(schemaOf(args))
  const output = spec.bare ? bareOf(spec.success) : resultOf(spec.success)
  return {
    name,
    schema,
    description: Json.of({
      name,
      title,
      description,
      inputSchema: schema,
      outputSchema: output,
      annotations: { title, ...ANNOTATIONS[effect] },
    }),
    check: () => undefined,
    run: async (given, call) => reply(await outcome(spec, given, call), spec.bare ?? false),
  }
}

const bareOf = (success: ShapeName | PlainObject): PlainObject =>
  typeof success === 'string' ? SHAPES[success] : success

type Outcome = { readonly object: PlainObject } | { readonly fault: string }

const outcome = async <A extends Arguments>(spec: Spec<A>, given: unknown, call: Call): Promise<Outcome> => {
  try {
    const args = readArguments(spec.name, spec.args, given as Readonly<Record<string, unknown>>)
    return { object: await spec.run(args, call) }
  } catch (error) {
    if (error instanceof ArgumentsError) return { fault: error.message }
    if (error instanceof Refusal || error instanceof StoreError) return { object: { error: error.message } }
    throw error
  }
}

const reply = (outcome: Outcome, bare: boolean): ToolOutput => {
  if ('fault' in outcome) return { content: [text(outcome.fault)], isError: true }
  const { object } = outcome
  return {
    content: [text(JSON.stringify(object, undefined, 2))],
    structuredContent: bare ? object : { result: object },
    isError: false,
  }
}
