import { isObject, type JsonObject } from '../../mcp/messages.ts'

/** What a server offers; the second segment of the address. */
export const KINDS = ['tools', 'prompts', 'resources', 'templates'] as const
export type ExploreKind = (typeof KINDS)[number]

/** The tabs of the page. */
export const VIEWS = [...KINDS, 'server', 'calls'] as const
export type ExploreView = (typeof VIEWS)[number]

interface KindInfo {
  readonly title: string
  readonly noun: string
  readonly method: string // that lists them
  readonly member: string // of the result
  readonly capability: string // of a server that has them
  readonly key: string // the member that identifies one
}

export const KIND_INFO: Readonly<Record<ExploreKind, KindInfo>> = {
  tools: { title: 'Tools', noun: 'tool', method: 'tools/list', member: 'tools', capability: 'tools', key: 'name' },
  prompts: {
    title: 'Prompts',
    noun: 'prompt',
    method: 'prompts/list',
    member: 'prompts',
    capability: 'prompts',
    key: 'name',
  },
  resources: {
    title: 'Resources',
    noun: 'resource',
    method: 'resources/list',
    member: 'resources',
    capability: 'resources',
    key: 'uri',
  },
  templates: {
    title: 'Templates',
    noun: 'template',
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    capability: 'resources',
    key: 'uriTemplate',
  },
}

/** A tool, prompt, resource or template of the list. */
export interface ExploreItem {
  readonly key: string
  readonly name: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly searched: string // lower case
  readonly server: string | undefined // of a workspace of several, where the gateway has said it
  readonly definition: JsonObject
}

export const textMember = (object: JsonObject, name: string): string | undefined => {
  const value = object[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Reads an item as its server wrote it; what is no text is left out. */
export const readItem = (kind: ExploreKind, definition: JsonObject, server?: string): ExploreItem => {
  const { annotations } = definition
  const key = textMember(definition, KIND_INFO[kind].key) ?? '(no name)'
  const name = textMember(definition, 'name') ?? key
  const title =
    textMember(definition, 'title') ?? (isObject(annotations) ? textMember(annotations, 'title') : undefined)
  const description = textMember(definition, 'description')
  const searched = [key, name, title, description].join('\n').toLowerCase()
  return { key, name, title, description, searched, server, definition }
}

/** The items of one server; without a name, of all. */
export const itemsOf = (items: readonly ExploreItem[], server: string | undefined): readonly ExploreItem[] =>
  server === undefined ? items : items.filter(item => item.server === server)

/** The items that have all words. */
export const searchItems = (items: readonly ExploreItem[], search: string): readonly ExploreItem[] => {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  return words.length === 0 ? items : items.filter(({ searched }) => words.every(word => searched.includes(word)))
}
