import type { ListKind } from './view.ts'

interface Row {
  readonly method: string // asks for the list
  readonly member: string // of the result, holds the list
  readonly key: 'name' | 'uri' | 'uriTemplate' // what an item is known by
  readonly capability: 'tools' | 'prompts' | 'resources' // of a server that has such a list
}

/** How each list is asked for and read. */
export const LIST_KINDS: Readonly<Record<ListKind, Row>> = {
  tools: { method: 'tools/list', member: 'tools', key: 'name', capability: 'tools' },
  prompts: { method: 'prompts/list', member: 'prompts', key: 'name', capability: 'prompts' },
  resources: { method: 'resources/list', member: 'resources', key: 'uri', capability: 'resources' },
  templates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    key: 'uriTemplate',
    capability: 'resources',
  },
}

const BY_METHOD: ReadonlyMap<string, ListKind> = new Map(
  (Object.keys(LIST_KINDS) as ListKind[]).map(kind => [LIST_KINDS[kind].method, kind]),
)

/** The list a method asks for; undefined for every other method. */
export const listKindOf = (method: string): ListKind | undefined => BY_METHOD.get(method)
