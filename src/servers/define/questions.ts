import { Json, type Plain, type PlainObject } from '../../wire/json/json.ts'
import type { Ability } from './abilities.ts'
import { type ArgumentsOf, checkArguments, type ObjectSchema } from './schema.ts'

/** A question for the client or its user, with the reader of its answer. */
export interface Ask<T> {
  readonly method: 'elicitation/create' | 'sampling/createMessage' | 'roots/list'
  readonly params: Json
  readonly needs: Ability
  /** The answer, or undefined if the result is not one to this question. */
  readonly read: (result: Json) => T | undefined
}

/** What a user did with a form. */
export type FormAnswer<C> =
  | { readonly action: 'accept'; readonly content: C }
  | { readonly action: 'decline' | 'cancel'; readonly content?: undefined }

/** Asks the user to fill in a flat form. */
export const elicit = <const S extends ObjectSchema>(message: string, schema: S): Ask<FormAnswer<ArgumentsOf<S>>> => ({
  method: 'elicitation/create',
  params: Json.of({ message, requestedSchema: schema }),
  needs: 'elicitation',
  read: result => readForm(schema, result) as FormAnswer<ArgumentsOf<S>> | undefined,
})

const readForm = (schema: ObjectSchema, result: Json): FormAnswer<unknown> | undefined => {
  const action = readAction(result)
  if (action === undefined) return undefined
  if (action !== 'accept') return { action }
  const content = (result.get('content') ?? Json.empty).toValue()
  return checkArguments(schema, content) === undefined ? { action, content } : undefined
}

/** What a user did with a link. */
export interface LinkAnswer {
  readonly action: Action
}

/** Asks the user to visit a page; what happens there stays between the two. */
export const elicitUrl = (message: string, url: string): Ask<LinkAnswer> => ({
  method: 'elicitation/create',
  params: Json.of({ mode: 'url', message, url }),
  needs: 'elicitation.url',
  read: result => {
    const action = readAction(result)
    return action && { action }
  },
})

type Action = 'accept' | 'decline' | 'cancel'

const readAction = (result: Json): Action | undefined => {
  const action = result.get('action')?.asString()
  return action === 'accept' || action === 'decline' || action === 'cancel' ? action : undefined
}

/** What a model said. */
export interface SampleAnswer {
  readonly text: string // of all its text blocks
  readonly model: string
  readonly result: Json
}

/** Asks the client's model; a string is one message of the user. */
export const sample = (
  messages: string | readonly Plain[],
  options: PlainObject & { readonly maxTokens: number },
): Ask<SampleAnswer> => ({
  method: 'sampling/createMessage',
  params: Json.of({
    messages: typeof messages === 'string' ? [{ role: 'user', content: { type: 'text', text: messages } }] : messages,
    ...options,
  }),
  needs: options.tools === undefined ? 'sampling' : 'sampling.tools',
  read: readSample,
})

const readSample = (result: Json): SampleAnswer | undefined => {
  const content = result.get('content')
  const model = result.get('model')?.asString()
  if (!content || model === undefined || result.get('role')?.asString() === undefined) return undefined
  const blocks = content.isObject ? [content] : content.elements()
  if (blocks.length === 0 && content.kind !== 'array') return undefined
  return { text: blocks.map(block => block.get('text')?.asString() ?? '').join(''), model, result }
}

/** A place the client lets servers work in. */
export interface Root {
  readonly uri: string
  readonly name: string | undefined
}

/** Asks which places the client lets servers work in. */
export const listRoots = (): Ask<readonly Root[]> => ({
  method: 'roots/list',
  params: Json.empty,
  needs: 'roots',
  read: result => {
    const roots = result.get('roots')
    if (roots?.kind !== 'array') return undefined
    const read = roots
      .elements()
      .map(root => ({ uri: root.get('uri')?.asString(), name: root.get('name')?.asString() }))
    return read.every((root): root is Root => root.uri !== undefined) ? read : undefined
  },
})
