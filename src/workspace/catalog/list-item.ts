import { META } from '../../protocol/meta.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { type RenameUri, rewriteTool } from '../routing/uris.ts'
import { LIST_KINDS } from './kinds.ts'
import type { MemberItem, MemberList } from './member-list.ts'
import type { ListKind, ShownItem } from './view.ts'

/** Where an entry comes from, and how it is shown. */
export interface Source {
  readonly kind: ListKind
  readonly member: Member
  readonly list: MemberList
  readonly at: number // of its items
  readonly exposed: string
  readonly revision: Revision
  readonly relink: RenameUri | undefined // how the links to its app are shown
}

/** One entry of a shelf. Its definition is made when somebody looks at it: of a long list most never are. */
export class ListItem implements ShownItem {
  readonly #source: Source
  readonly #listed: MemberItem
  #item: Json | undefined

  constructor(source: Source) {
    this.#source = source
    this.#listed = source.list.items[source.at] as MemberItem
  }

  get member(): Member {
    return this.#source.member
  }

  get original(): string {
    return this.#listed.original
  }

  get exposed(): string {
    return this.#source.exposed
  }

  get revision(): Revision {
    return this.#source.revision
  }

  get native(): Json | undefined {
    const { native: own, shown: json } = this.#listed
    return own === json ? undefined : own
  }

  get definition(): Json {
    this.#item ??= shownAs(this.#source, this.#listed.original)
    return this.#item
  }
}

const shownAs = ({ kind, member, list, at, exposed, revision, relink }: Source, original: string): Json => {
  const definition = list.in(revision, at)
  const named =
    exposed === original
      ? definition
      : renamed(definition, LIST_KINDS[kind].key, exposed, { server: member.server, name: original })
  return relink ? rewriteTool(named, relink) : named
}

const renamed = (definition: Json, key: string, exposed: string, origin: { server: string; name: string }): Json => {
  const meta = definition.get('_meta')
  return definition
    .with(key, exposed)
    .with('_meta', meta?.isObject ? meta.with(META.origin, Json.of(origin)) : Json.of({ [META.origin]: origin }))
}
