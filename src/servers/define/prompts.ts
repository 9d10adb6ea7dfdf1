import { Json, type PlainObject } from '../../wire/json/json.ts'
import { argumentsOf, type Call, textParam } from './call.ts'
import type { Completer } from './completion.ts'
import { type Block, text } from './content.ts'
import { failure } from './failures.ts'
import type { ItemList } from './item-list.ts'

/** One message of a prompt. */
export type PromptMessage = PlainObject & { readonly role: 'user' | 'assistant'; readonly content: Block }

export const user = (content: Block): PromptMessage => ({ role: 'user', content })
export const assistant = (content: Block): PromptMessage => ({ role: 'assistant', content })

/** What a prompt may return: the text of one user message, messages, or a whole result. */
export type PromptOutput = string | readonly PromptMessage[] | Json

interface PromptArgument {
  readonly title?: string
  readonly description?: string
  readonly required?: boolean
  readonly complete?: Completer
}

type PromptArguments = Readonly<Record<string, PromptArgument>>

type ValuesOf<A> = { readonly [K in keyof A as A[K] extends { readonly required: true } ? K : never]: string } & {
  readonly [K in keyof A as A[K] extends { readonly required: true } ? never : K]?: string
}

interface PromptSpec<A> {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly arguments?: A
  readonly get: (args: ValuesOf<A>, call: Call) => PromptOutput | Promise<PromptOutput>
}

/** A declared prompt. */
export interface Prompt {
  readonly name: string
  readonly description: Json
  readonly required: readonly string[]
  readonly completers: ReadonlyMap<string, Completer>
  readonly get: (args: Readonly<Record<string, string>>, call: Call) => PromptOutput | Promise<PromptOutput>
}

/** Declares a prompt; the types of its arguments follow from `arguments`. */
export const prompt = <const A extends PromptArguments>(spec: PromptSpec<A>): Prompt => {
  const { name, title, description } = spec
  const args = Object.entries<PromptArgument>(spec.arguments ?? {})
  const shown = args.map(([name, { title, description, required }]) => ({ name, title, description, required }))
  return {
    name,
    description: Json.of({ name, title, description, arguments: shown.length ? shown : undefined }),
    required: args.filter(([, { required }]) => required).map(([name]) => name),
    completers: new Map(args.flatMap(([name, { complete }]) => (complete ? [[name, complete]] : []))),
    get: spec.get as unknown as Prompt['get'],
  }
}

/** Answers prompts/get. */
export const getPrompt = async (prompts: ItemList<Prompt>, call: Call): Promise<Json> => {
  const name = textParam(call.params, 'name')
  const found = prompts.find(name)
  if (!found) throw failure('invalidParams', `Unknown prompt: ${name}`)
  const output = await found.get(readArguments(found, argumentsOf(call.params)), call)
  if (output instanceof Json) return output
  return Json.of({ messages: typeof output === 'string' ? [user(text(output))] : output })
}

const readArguments = (found: Prompt, args: Json): Record<string, string> => {
  for (const name of found.required)
    if (!args.has(name)) throw failure('invalidParams', `${found.name}: argument "${name}" is required (string)`)
  return Object.fromEntries(
    args.entries().map(([name, value]) => {
      const text = value.asString()
      if (text === undefined)
        throw failure('invalidParams', `${found.name}: argument "${name}" must be of type string, not ${value.kind}`)
      return [name, text]
    }),
  )
}
