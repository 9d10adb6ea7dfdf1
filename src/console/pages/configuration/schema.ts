import { isObject } from '../../mcp/messages.ts'

// The JSON Schema of the configuration, as far as forms need it.

export interface ConfigSchema {
  readonly type?: string | readonly string[] | undefined
  readonly description?: string | undefined
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly string[] | undefined
  readonly minimum?: number | undefined
  readonly maximum?: number | undefined
  readonly properties?: Readonly<Record<string, ConfigSchema>> | undefined
  readonly additionalProperties?: ConfigSchema | boolean | undefined
  readonly items?: ConfigSchema | undefined
  readonly anyOf?: readonly ConfigSchema[] | undefined
  readonly definitions?: Readonly<Record<string, ConfigSchema>> | undefined
}

/** How a value is edited. `json`: as text, for what has no control of its own. */
export type FieldKind = 'text' | 'number' | 'flag' | 'choice' | 'lines' | 'pairs' | 'group' | 'switched-group' | 'json'

const typesOf = ({ type }: ConfigSchema): readonly string[] =>
  Array.isArray(type) ? type : type === undefined ? [] : [type as string]

const isText = (schema: ConfigSchema | boolean | undefined): boolean => {
  if (!isObject(schema)) return false
  const types = typesOf(schema as ConfigSchema)
  return types.length > 0 && types.every(type => ['string', 'number', 'boolean'].includes(type))
}

export const kindOf = (schema: ConfigSchema): FieldKind => {
  const [type] = typesOf(schema)
  if (schema.enum) return 'choice'
  if (type === 'string') return 'text'
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'boolean') return 'flag'
  if (type === 'array') return typesOf(schema.items ?? {})[0] === 'string' ? 'lines' : 'json'
  if (schema.properties) return 'group'
  if (type === 'object' && isText(schema.additionalProperties)) return 'pairs'
  if (schema.anyOf?.some(({ const: value }) => value !== undefined) && groupIn(schema)) return 'switched-group'
  return 'json'
}

/** The object among the forms that a value may have. */
export const groupIn = ({ anyOf = [] }: ConfigSchema): ConfigSchema | undefined =>
  anyOf.find(({ properties }) => properties !== undefined)

/** The schema of an entry of `mcpServers`, `workspaces` or `policies`. */
export const entrySchema = (root: ConfigSchema | undefined, section: string): ConfigSchema => {
  if (section === 'mcpServers') return root?.definitions?.server ?? {}
  const entries = root?.properties?.[section]?.additionalProperties
  return typeof entries === 'object' ? entries : {}
}

/** A default as the file would have it. */
export const defaultText = (value: unknown): string | undefined =>
  value === undefined ? undefined : typeof value === 'string' ? value : JSON.stringify(value)
