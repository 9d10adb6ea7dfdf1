import { isDeepStrictEqual } from 'node:util'
import type { Caller } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Member } from '../member.ts'
import { CacheEntry, type Fetched } from './cache-entry.ts'
import { CacheScopes, type Concern, ownerOf } from './cache-scopes.ts'
import { createCacheVersions } from './cache-versions.ts'
import { createPatience } from './deadline.ts'
import { fetchList, type Introduction, introduce, listerOf, type Told, visit, type Work } from './fetch.ts'
import type { Times } from './freshness.ts'
import { createInterning } from './interning.ts'
import { createFlaws, type Flawed } from './list-faults.ts'
import { createMemberList, type MemberList } from './member-list.ts'
import type { Kind } from './view.ts'

/** Something somebody may have been told is not true any more. */
export interface News {
  readonly kind: Kind
  readonly server: string
  readonly concern: Concern
}

/** What a member of the workspace holds in a list, for one caller. */
export interface Held {
  readonly member: Member
  readonly holding: CacheEntry<MemberList>
}

interface Options {
  readonly members: readonly Member[]
  readonly times: Times
  readonly log: Log
  readonly news: (news: News) => void
  readonly flawed?: Flawed | undefined
}

/** The lists of every member, kept for those who may share them. */
export class Catalog {
  readonly times: Times
  readonly patience = createPatience()
  readonly #options: Options
  readonly #lists: CacheScopes<MemberList>
  readonly #introductions: CacheScopes<Introduction>
  readonly #intern = createInterning()
  readonly #report: ReturnType<typeof createFlaws>
  readonly #stamps = createCacheVersions()

  constructor(options: Options) {
    this.#options = options
    this.times = options.times
    this.#report = createFlaws(options.log, options.flawed)
    this.#lists = new CacheScopes((key, concern) => this.#create(key, concern), { bytesOf: ({ bytes }) => bytes })
    this.#introductions = new CacheScopes(
      () => new CacheEntry({ times: this.times, equal: () => false, changed: () => this.#introductions.trim() }),
      { bytesOf: ({ result }) => result.size },
    )
  }

  /** Another number whenever something held for this caller has changed. */
  stampOf(caller: Caller): number {
    return this.#stamps.of(caller)
  }

  /** Begins with what the catalogue before it knows of the same servers, shown the same way. */
  inherit(before: Catalog): void {
    const same = this.#options.members.filter(({ server, own, overlays }) =>
      before.#options.members.some(
        other => other.server === server && other.own === own && isDeepStrictEqual(other.overlays, overlays),
      ),
    )
    const servers = new Set(same.map(({ server }) => server))
    this.#lists.inherit(before.#lists, key => servers.has(key.split('\n')[0] ?? ''))
    this.#introductions.inherit(before.#introductions, key => servers.has(key))
  }

  held(member: Member, caller: Caller, kind: Kind): Held {
    return { member, holding: this.#lists.find(caller, keyOf(member, kind)) }
  }

  /** The same for several members. */
  heldBy(members: readonly Member[], caller: Caller, kind: Kind): Held[] {
    const find = this.#lists.finder(caller)
    return members.map(member => ({ member, holding: find(keyOf(member, kind)) }))
  }

  /** The lists that servers showed the same principal with other capabilities. */
  kinLists(caller: Caller, kind: Kind): (member: Member) => MemberList | undefined {
    const find = this.#lists.kinFinder(caller)
    return member => find(keyOf(member, kind))
  }

  introduction(member: Member, caller: Caller): CacheEntry<Introduction> {
    return this.#introductions.find(caller, member.server)
  }

  /** Whether a session has lists that nobody shares. */
  isApart(caller: Caller): boolean {
    return this.#lists.isApart(caller)
  }

  /** Asks for a list in the name of a caller, unless that is under way; never rejects. */
  refresh({ member, holding }: Held, caller: Caller, kind: Kind): Promise<void> {
    const key = keyOf(member, kind)
    const isOwn = this.#lists.isOwn(caller, key)
    return holding.refresh(async () => {
      const fetched = this.#listOf(member, kind, await this.#fetch(member, caller, kind, isOwn))
      if (isOwn) return fetched
      this.#lists.publish(caller, key, fetched)
      // What was public and is no more must reach nobody but him who asked.
      if (!fetched.isPublic && holding !== this.#lists.shared(caller, key))
        this.#lists.shared(caller, key).accept(fetched)
      return fetched
    })
  }

  introduce(member: Member, caller: Caller): Promise<void> {
    const lister = listerOf(caller, false)
    return this.introduction(member, caller).refresh(() => this.#visit(member, caller, lister, introduce))
  }

  /** A member said that a list has changed; `isOwn` where it said so to one session of its own. */
  doubt(member: Member, caller: Caller, kind: Kind, isOwn: boolean): Held {
    const key = keyOf(member, kind)
    this.#changed(caller)
    this.#lists.find(caller, key).doubt()
    this.#lists.shared(caller, key).doubt()
    if (!isOwn || caller.session === undefined) return this.held(member, caller, kind)
    const holding = this.#lists.apart(caller, caller.session, key)
    holding.heard ||= 1 // by that session
    holding.doubt()
    return { member, holding }
  }

  /** Counts those who would hear of a change. */
  heard(member: Member, caller: Caller, kind: Kind, by: 1 | -1): void {
    const key = keyOf(member, kind)
    this.#changed(caller)
    for (const holding of new Set([this.#lists.shared(caller, key), this.#lists.find(caller, key)])) {
      holding.heard = Math.max(0, holding.heard + by) // it may have been forgotten and made anew meanwhile
      holding.hasLapsed ||= by < 0 && holding.heard === 0
    }
  }

  /** A member was away: everything known of it is in doubt. */
  back(server: string, kinds: readonly Kind[]): void {
    this.#stamps.change({ kind: 'everybody' })
    for (const kind of kinds) for (const holding of this.#lists.all(`${server}\n${kind}`)) holding.revive()
    for (const holding of this.#introductions.all(server)) holding.revive()
  }

  /** A member is known to be down: what it listed is kept for a while. */
  down(server: string, kinds: readonly Kind[], reason: string): void {
    for (const kind of kinds)
      for (const holding of this.#lists.all(`${server}\n${kind}`)) if (!holding.flight) holding.fail(reason)
  }

  endSession(session: string): void {
    this.#lists.endSession(session)
  }

  close(): void {
    this.#lists.clear()
    this.#introductions.clear()
  }

  #changed(caller: Caller): void {
    this.#stamps.change({ kind: 'owner', owner: ownerOf(caller) })
    if (caller.session !== undefined) this.#stamps.change({ kind: 'session', session: caller.session })
  }

  #create(key: string, concern: Concern): CacheEntry<MemberList> {
    const [server = '', kind] = key.split('\n') as [string, Kind]
    return new CacheEntry<MemberList>({
      times: this.times,
      equal: (a, b) => a === b,
      changed: isNews => {
        this.#stamps.change(concern)
        this.#lists.trim()
        if (isNews) this.#options.news({ kind, server, concern })
      },
    })
  }

  async #fetch(member: Member, caller: Caller, kind: Kind, isOwn: boolean): Promise<Fetched<Told>> {
    const lister = listerOf(caller, isOwn)
    const introduction = this.introduction(member, caller)
    return this.#visit(member, caller, lister, async (peer, query) => {
      // On the same peer: another one might be another process.
      if (introduction.freshUntil < Date.now()) await introduction.refresh(() => introduce(peer, query))
      return fetchList(member, kind, peer, query, introduction.value)
    })
  }

  #visit<T>(member: Member, caller: Caller, lister: Caller, work: Work<T>): Promise<T> {
    return visit(member, lister, this.times.giveUpMs, work).then(result => {
      this.patience.answered(member, caller)
      return result
    })
  }

  #listOf(member: Member, kind: Kind, { value, ...hints }: Fetched<Told>): Fetched<MemberList> {
    const { revision, reading } = value
    this.#report(member.server, kind, reading)
    return { ...hints, value: this.#intern(keyOf(member, kind), createMemberList(kind, revision, reading)) }
  }
}

// No server has a line break in its name.
const keyOf = ({ server }: Member, kind: Kind): string => `${server}\n${kind}`
