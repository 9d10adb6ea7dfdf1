/** The four lists of a server. */
export type ListKind = 'tools' | 'prompts' | 'resources' | 'templates'

interface ListKindRow {
  readonly method: string // of the list request
  readonly member: string // of the result: the array of items
  readonly key: 'name' | 'uri' | 'uriTemplate' // identifies an item
  readonly capability: 'tools' | 'prompts' | 'resources' // of a server that has such a list
}

/** How each list is requested and read. */
export const LIST_KINDS: Readonly<Record<ListKind, ListKindRow>> = {
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

export const ALL_LIST_KINDS = Object.keys(LIST_KINDS) as readonly ListKind[]

const BY_METHOD: ReadonlyMap<string, ListKind> = new Map(ALL_LIST_KINDS.map(kind => [LIST_KINDS[kind].method, kind]))

/** The list that a method requests; undefined for every other method. */
export const listKindOf = (method: string): ListKind | undefined => BY_METHOD.get(method)
