import { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'

const APP = 'ui://'
const APP_ALIAS = /^ui:\/\/([a-z0-9-]{1,20})\.gw\/(.*)$/s
const ALIAS = /^x-mcp-([a-z0-9-]{1,20})\+(.*)$/s

/**
 * The alias of a URI or URI template that another server of the workspace exposes already. It contains the original, so an
 * expanded template is the alias of the expanded original. Apps keep their scheme, because hosts recognize them by it.
 */
export const aliasFor = (namespace: string, uri: string): string =>
  uri.startsWith(APP) ? `${APP}${namespace}.gw/${uri.slice(APP.length)}` : `x-mcp-${namespace}+${uri}`

/** Reads an alias; undefined for every other URI. */
export const originalOf = (alias: string): { readonly namespace: string; readonly uri: string } | undefined => {
  const app = APP_ALIAS.exec(alias)
  if (app) return { namespace: app[1] as string, uri: APP + app[2] }
  const other = ALIAS.exec(alias)
  return other ? { namespace: other[1] as string, uri: other[2] as string } : undefined
}

/** The new form of a URI; undefined: it stays as it is. */
export type RenameUri = (uri: string) => string | undefined

type Rewrite = (json: Json, rename: RenameUri) => Json

/** Rewrites the string at a path of members, if there is one. */
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

/** Rewrites every element of an array, or the single value in its place. */
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

const appLinks = all(at('_meta', 'ui', 'resourceUri'), at('_meta', 'ui/resourceUri'))

const BLOCKS: Readonly<Record<string, Rewrite>> = { resource_link: at('uri'), resource: at('resource', 'uri') }

/** Only blocks that are links: other blocks may contain text that looks like a URI. */
const block: Rewrite = (json, rename) => {
  const type = json.get('type')?.asString() ?? ''
  return Object.hasOwn(BLOCKS, type) ? (BLOCKS[type]?.(json, rename) ?? json) : json
}

/** Where results and notifications contain URIs. Text and structured content are never rewritten. */
const REWRITES: Readonly<Record<string, Rewrite>> = {
  'tools/call': all(each('content', block), appLinks),
  'prompts/get': each('messages', each('content', block)),
  'resources/read': each('contents', at('uri')),
  'notifications/resources/updated': at('uri'),
}

/** Rewrites the URIs in a result, or in the params of a notification; the same value where none changes. */
export const rewriteUris = (method: string, json: Json, rename: RenameUri): Json =>
  Object.hasOwn(REWRITES, method) && json.isObject ? (REWRITES[method]?.(json, rename) ?? json) : json

/** Rewrites the URIs in the definition of a tool. */
export const rewriteTool = (item: Json, rename: RenameUri): Json => (item.isObject ? appLinks(item, rename) : item)

/** Rewrites strings that are a URI as a whole, at any depth. */
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

/** Bytes of which a definition with a link to an app contains at least one sequence, in any notation. */
const APP_HINTS = [Buffer.from('resourceUri'), Buffer.from('\\u00')]

/** Whether a definition may link to an app; much cheaper than parsing it. */
export const mayLinkToApp = (definition: Buffer): boolean => APP_HINTS.some(hint => definition.includes(hint))

const appUrisIn = (item: Json): string[] => {
  const meta = item.get('_meta')
  if (!meta?.isObject) return []
  return [meta.at('ui', 'resourceUri'), meta.get('ui/resourceUri')].flatMap(uri => uri?.asString() ?? [])
}

/**
 * Makes the function that returns, tool by tool, how the links to its app are shown. An app URI that an earlier member has,
 * too, is shown as an alias, so that hosts open the right app. Undefined: the links stay as they are.
 */
export const createAppLinks = (namespaces: ReadonlyMap<string, string>) => {
  const owners = new Map<string, string>()
  return ({ server }: Member, item: Json): RenameUri | undefined => {
    const uris = appUrisIn(item)
    for (const uri of uris) if (!owners.has(uri)) owners.set(uri, server)
    if (uris.every(uri => owners.get(uri) === server)) return undefined
    return uri => (owners.get(uri) === server ? undefined : aliasFor(namespaces.get(server) ?? '', uri))
  }
}
