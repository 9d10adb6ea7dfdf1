import type { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { aliasFor, type RenameUri } from './uris.ts'

/** Text without which a definition has no such link, however it is written. */
const HINTS = [Buffer.from('resourceUri'), Buffer.from('\\u00')]

/** Whether a definition may link to an app; much cheaper than looking. */
export const mayLinkToApp = (definition: Buffer): boolean => HINTS.some(hint => definition.includes(hint))

const linksOf = (item: Json): string[] => {
  const meta = item.get('_meta')
  if (!meta?.isObject) return []
  return [meta.at('ui', 'resourceUri'), meta.get('ui/resourceUri')].flatMap(uri => uri?.asString() ?? [])
}

/**
 * Tells, tool after tool, how the links to its app are to be shown: one whose URI an earlier member's app has too is
 * shown by its alias, so that each host opens its own. Undefined: as they are.
 */
export const createAppLinks = (namespaces: ReadonlyMap<string, string>) => {
  const owners = new Map<string, string>()
  return ({ server }: Member, item: Json): RenameUri | undefined => {
    const links = linksOf(item)
    for (const uri of links) if (!owners.has(uri)) owners.set(uri, server)
    if (links.every(uri => owners.get(uri) === server)) return undefined
    return uri => (owners.get(uri) === server ? undefined : aliasFor(namespaces.get(server) ?? '', uri))
  }
}
