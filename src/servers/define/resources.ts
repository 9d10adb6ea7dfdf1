import { createVariableReader, type VariablesOf } from '../../protocol/uri-template.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { type Call, textParam } from './call.ts'
import type { Completer } from './completion.ts'
import { failure } from './failures.ts'
import type { ItemList } from './item-list.ts'

/** What `read` may return: text, bytes, a list of contents, or a whole result. */
export type ResourceContents = string | Uint8Array | readonly PlainObject[] | Json

interface Described {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  readonly annotations?: PlainObject
  readonly _meta?: PlainObject
}

/** A declared resource; its name in the list is its URI. */
export interface Resource {
  readonly name: string
  readonly description: Json
  readonly mimeType: string | undefined
  readonly read: (call: Call) => ResourceContents | Promise<ResourceContents>
}

/** Declares a resource. */
export const resource = (
  spec: Described & { readonly uri: string; readonly size?: number; readonly read: Resource['read'] },
): Resource => {
  const { read, ...shown } = spec
  return { name: spec.uri, description: Json.of(shown), mimeType: spec.mimeType, read }
}

type TemplateContents = ResourceContents | undefined // undefined: there is no such resource

interface TemplateSpec<T extends string> extends Described {
  readonly uriTemplate: T
  readonly complete?: { readonly [V in VariablesOf<T>]?: Completer }
  readonly read: (
    variables: Readonly<Record<VariablesOf<T>, string>>,
    call: Call,
    uri: string,
  ) => TemplateContents | Promise<TemplateContents>
}

/** A declared resource template; its name in the list is the template. */
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

/** Declares a resource template; the names of its variables follow from the template. */
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

/** Whether a URI is a resource or matches a template. */
export const isKnownUri = (resources: ItemList<Resource>, templates: ItemList<Template>, uri: string): boolean =>
  resources.find(uri) !== undefined || templates.all().some(({ match }) => match(uri))

/** Answers resources/read. */
export const readResource = async (
  resources: ItemList<Resource>,
  templates: ItemList<Template>,
  call: Call,
): Promise<Json> => {
  const uri = textParam(call.params, 'uri')
  const fixed = resources.find(uri)
  if (fixed) return toResult(uri, fixed.mimeType, await fixed.read(call))
  for (const { match, read, mimeType } of templates.all()) {
    const variables = match(uri)
    const contents = variables && (await read(variables, call, uri))
    if (contents !== undefined) return toResult(uri, mimeType, contents)
  }
  throw failure('invalidParams', `Unknown resource: ${uri}`, Json.of({ uri }))
}

const toResult = (uri: string, mimeType: string | undefined, contents: ResourceContents): Json => {
  if (contents instanceof Json) return contents
  if (typeof contents === 'string') return Json.of({ contents: [{ uri, mimeType, text: contents }] })
  if (contents instanceof Uint8Array)
    return Json.of({ contents: [{ uri, mimeType, blob: Buffer.from(contents).toString('base64') }] })
  return Json.of({ contents })
}
