import { createVariableReader, type VariablesOf } from '../../protocol/uri-template.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import type { Call } from './call.ts'
import type { Completer } from './completion.ts'
import { failure } from './failures.ts'
import { type Catalogue, textMember } from './listed.ts'

/** What a reader may give back: text, bytes, contents in parts, or a result written by hand. */
export type Contents = string | Uint8Array | readonly PlainObject[] | Json

interface Shown {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  readonly annotations?: PlainObject
  readonly _meta?: PlainObject
}

/** A resource as a server holds it; its URI is its name among the others. */
export interface Resource {
  readonly name: string
  readonly description: Json
  readonly mimeType: string | undefined
  readonly read: (call: Call) => Contents | Promise<Contents>
}

/** Declares a resource. */
export const resource = (
  spec: Shown & { readonly uri: string; readonly size?: number; readonly read: Resource['read'] },
): Resource => {
  const { read, ...shown } = spec
  return { name: spec.uri, description: Json.of(shown), mimeType: spec.mimeType, read }
}

type TemplateContents = Contents | undefined // undefined: there is no such resource

interface TemplateSpec<T extends string> extends Shown {
  readonly uriTemplate: T
  readonly complete?: { readonly [V in VariablesOf<T>]?: Completer }
  readonly read: (
    variables: Readonly<Record<VariablesOf<T>, string>>,
    call: Call,
    uri: string,
  ) => TemplateContents | Promise<TemplateContents>
}

/** A family of resources as a server holds it; the template is its name among the others. */
export interface Template {
  readonly name: string
  readonly description: Json
  readonly mimeType: string | undefined
  readonly completers: ReadonlyMap<string, Completer>
  readonly match: (uri: string) => Readonly<Record<string, string>> | undefined
  readonly read: (
    variables: Readonly<Record<string, string>>,
    call: Call,
    uri: string,
  ) => TemplateContents | Promise<TemplateContents>
}

/** Declares a family of resources; the names of its variables follow from the template. */
export const template = <const T extends string>(spec: TemplateSpec<T>): Template => {
  const { read, complete, ...shown } = spec
  return {
    name: spec.uriTemplate,
    description: Json.of(shown as unknown as PlainObject),
    mimeType: spec.mimeType,
    completers: new Map(Object.entries<Completer | undefined>(complete ?? {}).filter(isGiven)),
    match: createVariableReader(spec.uriTemplate),
    read: read as Template['read'],
  }
}

const isGiven = (entry: [string, Completer | undefined]): entry is [string, Completer] => entry[1] !== undefined

/** Whether a URI is one that this server would read. */
export const isKnownUri = (resources: Catalogue<Resource>, templates: Catalogue<Template>, uri: string): boolean =>
  resources.find(uri) !== undefined || templates.all().some(({ match }) => match(uri))

/** Answers resources/read. */
export const readResource = async (
  resources: Catalogue<Resource>,
  templates: Catalogue<Template>,
  call: Call,
): Promise<Json> => {
  const uri = textMember(call.params, 'uri')
  const fixed = resources.find(uri)
  if (fixed) return toResult(uri, fixed.mimeType, await fixed.read(call))
  for (const { match, read, mimeType } of templates.all()) {
    const variables = match(uri)
    const contents = variables && (await read(variables, call, uri))
    if (contents !== undefined) return toResult(uri, mimeType, contents)
  }
  throw failure('invalidParams', `Unknown resource: ${uri}`, Json.of({ uri }))
}

const toResult = (uri: string, mimeType: string | undefined, contents: Contents): Json => {
  if (contents instanceof Json) return contents
  if (typeof contents === 'string') return Json.of({ contents: [{ uri, mimeType, text: contents }] })
  if (contents instanceof Uint8Array)
    return Json.of({ contents: [{ uri, mimeType, blob: Buffer.from(contents).toString('base64') }] })
  return Json.of({ contents })
}
