import { Json } from '../../wire/json/json.ts'

const APP = 'ui://'
const APP_ALIAS = /^ui:\/\/([a-z0-9-]{1,20})\.gw\/(.*)$/s
const ALIAS = /^x-mcp-([a-z0-9-]{1,20})\+(.*)$/s

/**
 * What stands for a URI, or a URI template, that another server of the workspace shows already. The original is in it
 * as it is, so a filled-in template is the alias of the filled-in original; hosts know apps by their scheme.
 */
export const aliasFor = (namespace: string, uri: string): string =>
  uri.startsWith(APP) ? `${APP}${namespace}.gw/${uri.slice(APP.length)}` : `x-mcp-${namespace}+${uri}`

/** Reads an alias back; undefined for every other URI. */
export const originalOf = (alias: string): { readonly ns: string; readonly uri: string } | undefined => {
  const app = APP_ALIAS.exec(alias)
  if (app) return { ns: app[1] as string, uri: APP + app[2] }
  const other = ALIAS.exec(alias)
  return other ? { ns: other[1] as string, uri: other[2] as string } : undefined
}

/** Says what a URI becomes; undefined: it stays. */
export type RenameUri = (uri: string) => string | undefined

type Rewrite = (json: Json, rename: RenameUri) => Json

/** Replaces the text at a path of members, where there is one. */
const at =
  (...path: readonly string[]): Rewrite =>
  (json, rename) => {
    const [key = '', ...rest] = path
    const value = json.get(key)
    if (!value) return json
    if (rest.length > 0) return json.with(key, at(...rest)(value, rename))
    const text = value.asString()
    const renamed = text === undefined ? undefined : rename(text)
    return renamed === undefined ? json : json.with(key, renamed)
  }

/** Rewrites every element of a list, or the one value that stands for it. */
const each =
  (key: string, rewrite: Rewrite): Rewrite =>
  (json, rename) => {
    const value = json.get(key)
    if (!value) return json
    const rewritten = value.isObject ? rewrite(value, rename) : value.map(element => rewrite(element, rename))
    return json.with(key, rewritten)
  }

const all =
  (...rewrites: readonly Rewrite[]): Rewrite =>
  (json, rename) =>
    rewrites.reduce((rewritten, rewrite) => rewrite(rewritten, rename), json)

const ofApp = all(at('_meta', 'ui', 'resourceUri'), at('_meta', 'ui/resourceUri'))

const BLOCKS: Readonly<Record<string, Rewrite>> = { resource_link: at('uri'), resource: at('resource', 'uri') }

/** Only in blocks that are links: a word of some other block may look like one. */
const block: Rewrite = (json, rename) => {
  const type = json.get('type')?.asString() ?? ''
  return Object.hasOwn(BLOCKS, type) ? (BLOCKS[type]?.(json, rename) ?? json) : json
}

/** Where results and notices hold URIs. Text and structured content are the server's own words. */
const PLACES: Readonly<Record<string, Rewrite>> = {
  'tools/call': all(each('content', block), ofApp),
  'prompts/get': each('messages', each('content', block)),
  'resources/read': each('contents', at('uri')),
  'notifications/resources/updated': at('uri'),
}

/** Rewrites the URIs in a result, or in the params of a notice; the same value where none changes. */
export const rewriteUris = (method: string, json: Json, rename: RenameUri): Json =>
  Object.hasOwn(PLACES, method) && json.isObject ? (PLACES[method]?.(json, rename) ?? json) : json

/** Rewrites the URIs in the definition of one tool. */
export const rewriteTool = (item: Json, rename: RenameUri): Json => (item.isObject ? ofApp(item, rename) : item)

/** Replaces texts that are wholly a URI, at any depth. */
export const rewriteTexts = (json: Json, rename: RenameUri): Json => {
  switch (json.kind) {
    case 'string': {
      const renamed = rename(json.asString() ?? '')
      return renamed === undefined ? json : Json.of(renamed)
    }
    case 'array':
      return json.map(element => rewriteTexts(element, rename))
    case 'object':
      return json.entries().reduce((rewritten, [key, value]) => rewritten.with(key, rewriteTexts(value, rename)), json)
    default:
      return json
  }
}
