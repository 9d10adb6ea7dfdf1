import { createHash } from 'node:crypto'
import type { NameStyle } from '../../config/snapshot.ts'
import type { Revision } from '../../protocol/revisions.ts'
import type { Member } from '../member.ts'
import type { PolicyRules } from '../policy/policy.ts'
import { createAppLinks } from '../routing/app-links.ts'
import { createFinder } from '../routing/finder.ts'
import { aliasFor } from '../routing/uris.ts'
import { LIST_KINDS } from './kinds.ts'
import { ListItem } from './list-item.ts'
import type { MemberItem, MemberList } from './member-list.ts'
import { exposedNames, namespacesOf } from './names.ts'
import type { ListKind, MergedList } from './view.ts'

/** What one member contributes; undefined: it should, and does not. */
export interface ListPart {
  readonly member: Member
  readonly list: MemberList | undefined
}

/** The rules by which things are shown. */
export interface MergeRules {
  readonly kind: ListKind
  readonly revision: Revision
  readonly style: NameStyle
  readonly servers: readonly string[] // all the workspace is configured with
  readonly rules: PolicyRules
}

interface Picked {
  readonly member: Member
  readonly list: MemberList
  readonly at: readonly number[] // of the items that may be shown
}

/** Makes one list of what the members contribute, as callers of a revision may see it. */
export const buildMergedList = (parts: readonly ListPart[], showing: MergeRules): MergedList => {
  const { kind, servers, revision } = showing
  const namespaces = namespacesOf(servers)
  const picks = parts.flatMap(({ member, list }) => (list ? { member, list, at: pick(member, list, showing) } : []))
  const named = LIST_KINDS[kind].key === 'name' ? namesOf(picks, showing) : urisOf(picks, namespaces)
  const relinkOf = createAppLinks(namespaces)
  const entries = new Map<string, ListItem>()
  const shown = picks.map(({ member, list, at }, p): Picked => {
    const free = at.filter((index, i) => {
      const exposed = named[p]?.[i] ?? ''
      if (entries.has(exposed)) return false // two of one server may have been given the same name
      const relink = list.mayLinkToApp ? relinkOf(member, (list.items[index] as MemberItem).shown) : undefined
      entries.set(exposed, new ListItem({ kind, member, list, at: index, exposed, revision, relink }))
      return true
    })
    return { member, list, at: free }
  })
  let epoch: string | undefined
  let visible: ReadonlyMap<string, Visibility> | undefined
  return {
    items: [...entries.values()],
    missingServers: parts.flatMap(({ member, list }) => (list ? [] : member.server)),
    bytes: parts.reduce((sum, { list }) => sum + (list?.bytes ?? 0), 0),
    get hash() {
      epoch ??= epochOf(kind, shown, entries.keys())
      return epoch
    },
    find: LIST_KINDS[kind].key === 'name' ? createFinder(entries, servers) : uri => entries.get(uri),
    visibility: (server, original) => {
      visible ??= new Map(picks.map(pick => [pick.member.server, visibilityOf(pick)]))
      return visible.get(server)?.get(original)
    },
  }
}

type Visibility = ReadonlyMap<string, 'shown' | 'hidden'>

const visibilityOf = ({ list, at }: Picked): Visibility => {
  const shown = new Set(at)
  return new Map(list.items.map(({ original }, i) => [original, shown.has(i) ? 'shown' : 'hidden'] as const))
}

const epochOf = (kind: ListKind, shown: readonly Picked[], names: Iterable<string>): string =>
  createHash('sha256')
    .update([kind, ...shown.flatMap(({ list, at }) => (at.length > 0 ? list.digest(at) : [])), ...names].join('\n'))
    .digest('base64url')

const pick = (member: Member, { items }: MemberList, { kind, rules }: MergeRules): number[] => {
  const found: number[] = []
  items.forEach(({ original, shown: json }, i) => {
    const isHidden = kind === 'tools' && member.overlays.get(original)?.hidden === true
    if (!isHidden && (rules.isOpen || rules.allows(kind, member.server, original, json))) found.push(i)
  })
  return found
}

type Named = readonly (readonly string[])[]

const namesOf = (picks: readonly Picked[], { kind, style, servers }: MergeRules): Named => {
  const nameOf = ({ overlays }: Member, original: string): string =>
    (kind === 'tools' ? overlays.get(original)?.name : undefined) ?? original
  const offers = picks.map(({ member, list, at }) => ({
    server: member.server,
    names: at.map(i => nameOf(member, (list.items[i] as MemberItem).original)),
  }))
  return exposedNames(style, offers, servers)
}

/** URIs stay as they are, for models and hosts use them beside us; only what an earlier member has already is renamed. */
const urisOf = (picks: readonly Picked[], namespaces: ReadonlyMap<string, string>): Named => {
  const taken = new Set<string>()
  return picks.map(({ member, list, at }) => {
    const own = at.map(i => (list.items[i] as MemberItem).original)
    const shown = own.map(uri => (taken.has(uri) ? aliasFor(namespaces.get(member.server) ?? '', uri) : uri))
    for (const uri of own) taken.add(uri)
    return shown
  })
}
