import { createHash } from 'node:crypto'
import type { NameStyle } from '../../config/snapshot.ts'
import { META } from '../../protocol/meta.ts'
import type { Revision } from '../../protocol/revisions.ts'
import type { ToolSize } from '../../protocol/tool-size.ts'
import { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import type { PolicyRules } from '../policy/policy.ts'
import { aliasFor, createAppLinks, type RenameUri, rewriteTool } from '../routing/uris.ts'
import { showOf } from './fetch.ts'
import { LIST_KINDS, type ListKind } from './list-kinds.ts'
import { sizeOfNamed } from './list-size.ts'
import { convertItem, type MemberItem, type MemberList } from './member-list.ts'
import { type AmbiguousName, createFinder, exposedNames, namespacesOf } from './names.ts'

/** One item of a list that clients get. */
export interface ShownItem {
  readonly member?: Member | undefined // undefined: it is a tool of the gateway itself
  readonly exposed: string // its name, URI or URI template as callers see it
  readonly definition: Json // as callers see it
}

/** One tool, prompt, resource or template of a member, as callers of the workspace see it. */
export interface ListItem extends ShownItem {
  readonly member: Member
  readonly original: string // its name, URI or URI template at the server
  readonly native?: Json | undefined // the definition before the overlay and trimming; undefined: there are none
  readonly whole: Json // the definition as callers see it, before trimming
  readonly identity: Json // the same object for one definition, whatever the revision and the name are
  readonly size: ToolSize // the same for every revision
  readonly revision: Revision // of its definition
}

/** A list that clients get; immutable. */
export interface ShownList {
  readonly items: readonly ShownItem[]
  readonly missingServers: readonly string[] // servers whose list is not known yet
  readonly hash: string // equal for equal content
  readonly bytes: number // of the lists it is made of
  readonly leftOut?: number | undefined // how many tools callers can use although they are not listed
}

/** One list of a workspace, as certain callers may see it; immutable. */
export interface MergedList extends ShownList {
  readonly items: readonly ListItem[] // in the order of the workspace's servers
  /** By any form of the name: as shown, `<server>__<name>`, `<server>/<name>`, or the bare name where it is unique. */
  find(name: string): ListItem | AmbiguousName<ListItem> | undefined
  /** Whether these callers may see an item of a server; undefined: the server does not list it. */
  visibility(server: string, original: string): 'shown' | 'hidden' | undefined
}

/** The list of one member; undefined: it is not known yet. */
export interface ListPart {
  readonly member: Member
  readonly list: MemberList | undefined
}

export interface MergeRules {
  readonly kind: ListKind
  readonly revision: Revision
  readonly style: NameStyle
  readonly nameLength?: number | undefined // undefined: 64, with a prefix only
  readonly servers: readonly string[] // all servers of the workspace's configuration
  readonly rules: PolicyRules
}

interface PickedItems {
  readonly member: Member
  readonly list: MemberList
  readonly at: readonly number[] // positions of the items that may be shown
}

/** Merges the lists of the members into one, for callers with these rules and this revision. */
export const buildMergedList = (parts: readonly ListPart[], merge: MergeRules): MergedList => {
  const { kind, servers, revision } = merge
  const isNamed = LIST_KINDS[kind].key === 'name'
  const namespaces = namespacesOf(servers)
  const picks = parts.flatMap(({ member, list }) => (list ? { member, list, at: pick(member, list, merge) } : []))
  const exposed = isNamed ? namesOf(picks, merge) : urisOf(picks, namespaces)
  const relinkOf = createAppLinks(namespaces)
  const items = new Map<string, ListItem>()
  const shown = picks.map(({ member, list, at }, p): PickedItems => {
    const free = at.filter((index, i) => {
      const name = exposed[p]?.[i] ?? ''
      if (items.has(name)) return false // overlays may have given two tools of one server the same name
      const relink = list.mayLinkToApp ? relinkOf(member, (list.items[index] as MemberItem).shown) : undefined
      items.set(name, new LazyItem({ kind, member, list, at: index, exposed: name, revision, relink }))
      return true
    })
    return { member, list, at: free }
  })
  let hash: string | undefined
  let visibility: ReadonlyMap<string, VisibilityByName> | undefined
  return {
    items: [...items.values()],
    missingServers: parts.flatMap(({ member, list }) => (list ? [] : member.server)),
    bytes: parts.reduce((sum, { list }) => sum + (list?.bytes ?? 0), 0),
    get hash() {
      hash ??= hashOf(kind, shown, items.keys())
      return hash
    },
    find: isNamed ? createFinder(items, servers) : uri => items.get(uri),
    visibility: (server, original) => {
      visibility ??= new Map(picks.map(picked => [picked.member.server, visibilityOf(picked)]))
      return visibility.get(server)?.get(original)
    },
  }
}

interface ItemSource {
  readonly kind: ListKind
  readonly member: Member
  readonly list: MemberList
  readonly at: number // its position in the list
  readonly exposed: string
  readonly revision: Revision
  readonly relink: RenameUri | undefined // how links to its app are shown
}

/** Builds its definition on first access: most items of a long list are never read. */
class LazyItem implements ListItem {
  readonly member: Member
  readonly original: string
  readonly exposed: string
  readonly #source: ItemSource
  #definition: Json | undefined

  constructor(source: ItemSource) {
    this.member = source.member
    this.original = (source.list.items[source.at] as MemberItem).original
    this.exposed = source.exposed
    this.#source = source
  }

  get revision(): Revision {
    return this.#source.revision
  }

  get native(): Json | undefined {
    const { native, shown } = this.#source.list.items[this.#source.at] as MemberItem
    return native === shown ? undefined : native
  }

  get whole(): Json {
    const { kind, member, list, revision } = this.#source
    const { native } = this
    const shown =
      native && member.trim ? showOf({ ...member, trim: undefined }, kind)(this.original, native) : undefined
    if (!shown || !('item' in shown)) return this.definition
    return definitionOf(this.#source, this.original, convertItem(kind, shown.item, list.revision, revision))
  }

  get identity(): Json {
    return (this.#source.list.items[this.#source.at] as MemberItem).shown
  }

  get size(): ToolSize {
    const { member, exposed, original, identity: shown } = this
    return sizeOfNamed({ server: member.server, original, exposed, shown })
  }

  get definition(): Json {
    this.#definition ??= definitionOf(this.#source, this.original)
    return this.#definition
  }
}

const definitionOf = (
  { kind, member, list, at, exposed, revision, relink }: ItemSource,
  original: string,
  listed: Json = list.in(revision, at),
): Json => {
  const named =
    exposed === original ? listed : withName(listed, kind, exposed, { server: member.server, name: original })
  return relink ? rewriteTool(named, relink) : named
}

const withName = (listed: Json, kind: ListKind, exposed: string, origin: { server: string; name: string }): Json => {
  const meta = listed.get('_meta')
  return listed
    .with(LIST_KINDS[kind].key, exposed)
    .with('_meta', meta?.isObject ? meta.with(META.origin, Json.of(origin)) : Json.of({ [META.origin]: origin }))
}

type VisibilityByName = ReadonlyMap<string, 'shown' | 'hidden'>

const visibilityOf = ({ list, at }: PickedItems): VisibilityByName => {
  const shown = new Set(at)
  return new Map(list.items.map(({ original }, i) => [original, shown.has(i) ? 'shown' : 'hidden'] as const))
}

const hashOf = (kind: ListKind, shown: readonly PickedItems[], names: Iterable<string>): string =>
  createHash('sha256')
    .update([kind, ...shown.flatMap(({ list, at }) => (at.length > 0 ? list.digest(at) : [])), ...names].join('\n'))
    .digest('base64url')

const pick = (member: Member, { items }: MemberList, { kind, rules }: MergeRules): number[] => {
  const found: number[] = []
  items.forEach(({ original, shown }, i) => {
    const isHidden = kind === 'tools' && member.overlays.get(original)?.hidden === true
    if (!isHidden && (rules.isOpen || rules.allows(kind, member.server, original, shown))) found.push(i)
  })
  return found
}

type ExposedNames = readonly (readonly string[])[]

const namesOf = (picks: readonly PickedItems[], { kind, style, nameLength, servers }: MergeRules): ExposedNames => {
  const nameOf = ({ overlays }: Member, original: string): string =>
    (kind === 'tools' ? overlays.get(original)?.name : undefined) ?? original
  const offers = picks.map(({ member, list, at }) => ({
    server: member.server,
    names: at.map(i => nameOf(member, (list.items[i] as MemberItem).original)),
  }))
  return exposedNames(style, offers, servers, nameLength)
}

/** URIs stay as they are, because models and hosts use them outside the gateway; only a duplicate gets an alias. */
const urisOf = (picks: readonly PickedItems[], namespaces: ReadonlyMap<string, string>): ExposedNames => {
  const taken = new Set<string>()
  return picks.map(({ member, list, at }) => {
    const originals = at.map(i => (list.items[i] as MemberItem).original)
    const exposed = originals.map(uri => (taken.has(uri) ? aliasFor(namespaces.get(member.server) ?? '', uri) : uri))
    for (const uri of originals) taken.add(uri)
    return exposed
  })
}
