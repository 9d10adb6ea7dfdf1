import type { RpcError } from '../../protocol/errors.ts'
import { Json, type Plain, type PlainObject } from '../../wire/json/json.ts'
import { failure } from './failures.ts'
import { type ArgumentsOf, checkArguments, type ObjectSchema } from './schema.ts'

/** A question for the client or its user, with the reader of its answer. */
export interface Ask<T> {
  readonly method: 'elicitation/create' | 'sampling/createMessage' | 'roots/list'
  readonly params: Json
  readonly needs: ClientCapability
  /** The answer, or undefined if the result does not answer this question. */
  readonly read: (result: Json) => T | undefined
}

/** Thrown by `ask`: the client answered with an error or with an invalid result, or the call ended first. */
export class AskFailure extends Error {
  readonly kind: 'refused' | 'withdrawn' | 'malformed'
  readonly key: string
  readonly error: RpcError | undefined // the client's error, where it refused

  constructor(kind: AskFailure['kind'], key: string, message: string, error?: RpcError) {
    super(message)
    this.kind = kind
    this.key = key
    this.error = error
  }
}

/** What a user did with a form. */
export type FormAnswer<C> =
  | { readonly action: 'accept'; readonly content: C }
  | { readonly action: 'decline' | 'cancel'; readonly content?: undefined }

/** Asks the user to fill in a form. */
export const elicit = <const S extends ObjectSchema>(message: string, schema: S): Ask<FormAnswer<ArgumentsOf<S>>> => ({
  method: 'elicitation/create',
  params: Json.of({ message, requestedSchema: schema }),
  needs: 'elicitation',
  read: result => readForm(schema, result) as FormAnswer<ArgumentsOf<S>> | undefined,
})

const readForm = (schema: ObjectSchema, result: Json): FormAnswer<unknown> | undefined => {
  const action = readAction(result)
  if (action !== 'accept') return action && { action }
  const content = (result.get('content') ?? Json.empty).toValue()
  return checkArguments(schema, content) === undefined ? { action, content } : undefined
}

type UserAction = 'accept' | 'decline' | 'cancel'

/** What a user did with a link. */
export interface LinkAnswer {
  readonly action: UserAction
}

/** Asks the user to visit a page; the server does not learn what happens there. */
export const elicitUrl = (message: string, url: string): Ask<LinkAnswer> => ({
  method: 'elicitation/create',
  params: Json.of({ mode: 'url', message, url }),
  needs: 'elicitation.url',
  read: result => {
    const action = readAction(result)
    return action && { action }
  },
})

const readAction = (result: Json): UserAction | undefined => {
  const action = result.get('action')?.asString()
  return action === 'accept' || action === 'decline' || action === 'cancel' ? action : undefined
}

/** The answer of a model. */
export interface SampleAnswer {
  readonly text: string // of all its text blocks
  readonly model: string
  readonly result: Json
}

/** Asks the client's model; a string is one user message. */
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

/** A folder the client lets servers work in. */
export interface ClientRoot {
  readonly uri: string
  readonly name: string | undefined
}

/** Asks for the client's roots. */
export const listRoots = (): Ask<readonly ClientRoot[]> => ({
  method: 'roots/list',
  params: Json.empty,
  needs: 'roots',
  read: result => {
    const list = result.get('roots')
    if (list?.kind !== 'array') return undefined
    const roots = list
      .elements()
      .map(root => ({ uri: root.get('uri')?.asString(), name: root.get('name')?.asString() }))
    return roots.every((root): root is ClientRoot => root.uri !== undefined) ? roots : undefined
  },
})

/** A capability that a question needs the client to declare. */
export type ClientCapability = 'sampling' | 'sampling.tools' | 'elicitation' | 'elicitation.url' | 'roots'

interface CapabilityRow {
  readonly declared: Readonly<Record<string, PlainObject>> // as a client declares it
  readonly isIn: (capabilities: Json) => boolean
}

const hasMember =
  (...path: string[]) =>
  (capabilities: Json): boolean =>
    capabilities.at(...path)?.isObject === true

const CAPABILITIES: Readonly<Record<ClientCapability, CapabilityRow>> = {
  sampling: { declared: { sampling: {} }, isIn: hasMember('sampling') },
  'sampling.tools': { declared: { sampling: { tools: {} } }, isIn: hasMember('sampling', 'tools') },
  elicitation: {
    declared: { elicitation: { form: {} } },
    isIn: capabilities => {
      const modes = capabilities.get('elicitation')
      return modes?.isObject === true && (modes.has('form') || !modes.has('url')) // a bare {} means forms
    },
  },
  'elicitation.url': { declared: { elicitation: { url: {} } }, isIn: hasMember('elicitation', 'url') },
  roots: { declared: { roots: {} }, isIn: hasMember('roots') },
}

/** Whether a client has declared a capability. */
export const hasCapability = (capabilities: Json, capability: ClientCapability): boolean =>
  CAPABILITIES[capability].isIn(capabilities)

/** Throws the error that lists what the client would have to declare. */
export const requireCapabilities = (capabilities: Json, wanted: readonly ClientCapability[]): void => {
  const missing = wanted.filter(capability => !hasCapability(capabilities, capability))
  if (missing.length === 0) return
  const required: Record<string, PlainObject> = {}
  for (const capability of missing)
    for (const [feature, modes] of Object.entries(CAPABILITIES[capability].declared))
      required[feature] = { ...required[feature], ...modes }
  throw failure(
    'missingCapability',
    `This needs a client that declares ${missing.join(' and ')}`,
    Json.of({ requiredCapabilities: required }),
  )
}
