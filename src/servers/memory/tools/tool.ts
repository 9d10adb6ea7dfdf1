import { Json, type PlainObject } from '../../../wire/json/json.ts'
import type { Call } from '../../define/call.ts'
import { text } from '../../define/content.ts'
import type { Tool, ToolOutput } from '../../define/tools.ts'
import { checkGroupId, RequestError } from '../input-checks.ts'
import type { Remember } from '../remember.ts'
import type { EmbedQuery } from '../search/passages.ts'
import { type By, type MemoryStore, StoreError } from '../store.ts'
import { type Arguments, ArgumentsError, readArguments, schemaOf, type Values } from './arguments.ts'
import { outputSchema, RESULTS, type ResultName } from './results.ts'

/** What the tools and resources of one tenant work with. */
export interface ToolContext {
  withStore<T>(work: (store: MemoryStore) => Promise<T>): Promise<T>
  readonly defaultGroup: string
  readonly remember: Remember
  readonly embed: EmbedQuery
  /** Enqueues the embedding of what was just written, if an embedding model is configured. */
  readonly embedLater: (store: MemoryStore, group: string) => Promise<void>
}

/** What a tool gets for one call besides its arguments. */
export interface ToolCall extends ToolContext {
  readonly store: MemoryStore
  readonly by: By
  readonly warnings: readonly string[] // about arguments that were ignored
  /** The group to write to; blank means the default. */
  groupFor(given: string | undefined): string
  /** The groups to read; none means the default. */
  groupsFor(given: readonly string[] | undefined): readonly string[]
}

/** Hints for hosts about what a tool does to the memory. */
const ANNOTATIONS = {
  reads: { readOnlyHint: true, openWorldHint: false },
  writes: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  deletes: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
} as const satisfies Readonly<Record<string, PlainObject>>

interface MemoryToolSpec<A extends Arguments> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly effect: keyof typeof ANNOTATIONS
  readonly args: A
  readonly success: ResultName | PlainObject
  /** The structured content is the result itself instead of `{ result }`. */
  readonly isBare?: boolean
  readonly run: (args: Values<A>, call: ToolCall) => Promise<PlainObject>
  /** The result in place of any error, for a tool that never fails. */
  readonly onError?: (message: string) => PlainObject
}

/** A tool of the memory contract, to be bound to a tenant. */
export type MemoryTool = (context: ToolContext) => Tool

/**
 * Declares a tool of the memory contract. A failure is a result with the member `error`, as clients of the contract
 * expect; only invalid arguments make an `isError` result.
 */
export const memoryTool = <A extends Arguments>(spec: MemoryToolSpec<A>): MemoryTool => {
  const { name, title, description, effect, args, success, isBare = false } = spec
  const schema = Json.of(schemaOf(args))
  const bareSchema = typeof success === 'string' ? RESULTS[success] : success
  const declaration = Json.of({
    name,
    title,
    description,
    inputSchema: schema,
    outputSchema: isBare ? bareSchema : outputSchema(success),
    annotations: { title, ...ANNOTATIONS[effect] },
  })
  return context => ({
    name,
    schema,
    description: declaration,
    check: () => undefined,
    run: async (given, call) => runTool(spec, given, context, call),
  })
}

const runTool = async <A extends Arguments>(
  { name, args, run, onError, isBare }: MemoryToolSpec<A>,
  given: unknown,
  context: ToolContext,
  call: Call,
): Promise<ToolOutput> => {
  try {
    const { values, warnings } = readArguments(name, args, given as Readonly<Record<string, unknown>>)
    const by = { actor: call.caller.principal }
    return present(await context.withStore(store => run(values, toolCall(context, store, by, warnings))), isBare)
  } catch (error) {
    if (error instanceof ArgumentsError) return { content: [text(error.message)], isError: true }
    if (onError) return present(onError(error instanceof Error ? error.message : String(error)), isBare)
    if (error instanceof RequestError || error instanceof StoreError) return present({ error: error.message }, isBare)
    throw error
  }
}

const toolCall = (context: ToolContext, store: MemoryStore, by: By, warnings: readonly string[]): ToolCall => {
  const { defaultGroup } = context
  const groupFor = (given: string | undefined): string => checkGroupId(given?.trim() ? given : defaultGroup)
  const groupsFor: ToolCall['groupsFor'] = given =>
    given === undefined || given.length === 0 ? [defaultGroup] : [...new Set(given.map(groupFor))]
  return { ...context, store, by, warnings, groupFor, groupsFor }
}

const present = (result: PlainObject, isBare = false): ToolOutput => ({
  content: [text(JSON.stringify(result, undefined, 2))],
  structuredContent: isBare ? result : { result },
  isError: false,
})
