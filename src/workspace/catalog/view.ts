import type { Caller } from '../../protocol/exchange.ts'
import type { Revision } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'

/** The four lists of a server. */
export type ListKind = 'tools' | 'prompts' | 'resources' | 'templates'

/** One tool, prompt, resource or template of a member, as callers of the workspace see it. */
export interface ShownItem {
  readonly member: Member
  readonly original: string // name, URI or URI template at its server
  readonly exposed: string // the same as callers see it
  readonly definition: Json // the definition as shown, in the words of `revision`
  readonly native?: Json | undefined // the same before an overlay changed it; undefined: no overlay did
  readonly revision: Revision
}

/** One list of a workspace as one caller may see it; never changes once made. */
export interface MergedList {
  readonly items: readonly ShownItem[] // in the order of the workspace
  readonly missingServers: readonly string[] // servers that are not in it and should be
  readonly hash: string // equal for equal content
  readonly bytes: number // of the lists it is made of
  /** By any form of its name: as shown, `<server>__<name>`, `<server>/<name>`, or the bare name where it is unique. (`createFinder`) */
  find(name: string): ShownItem | AmbiguousName | undefined
  /** Whether this caller may see what a server lists under that name of its own; undefined: the server does not list it. */
  visibility(server: string, original: string): 'shown' | 'hidden' | undefined
}

/** A bare name that several members have. */
export interface AmbiguousName {
  readonly candidates: readonly ShownItem[]
}

/** Where the lists of a workspace come from; what a caller may not see is not on its shelves. */
export interface ListView {
  /** The shelf as it is now; a promise only where nothing is known yet. */
  get(caller: Caller, kind: ListKind): MergedList | Promise<MergedList>
  /** Asks the members again: a name was called that nobody listed. */
  refetch(caller: Caller, kind: ListKind): Promise<MergedList>
  /** What is known already; asks nobody and waits for nothing. */
  cached(caller: Caller, kind: ListKind): MergedList | undefined
}
