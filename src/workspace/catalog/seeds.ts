import { isModern, MODERN, NEWEST_LEGACY, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import type { Seed } from './cache-entry.ts'
import { publicKeyIn, publicKeyOf } from './cache-owner.ts'
import type { Discovery } from './fetch.ts'
import type { CacheHints } from './freshness.ts'
import { type LearntList, type LearntServer, showLearnt } from './learnt-server.ts'
import type { ListKind } from './list-kinds.ts'
import type { MemberList } from './member-list.ts'

/** What the cached values of an owner start with; undefined: nothing that the owner may see is known. */
export interface Seeds {
  /** `sibling`: what the same principal was sent with other capabilities. */
  list(server: string, kind: ListKind, owner: string, sibling: MemberList | undefined): Seed<MemberList> | undefined
  discovery(server: string, owner: string, sibling: Discovery | undefined): Seed<Discovery> | undefined
}

interface FoundServer {
  readonly member: Member
  readonly learnt: LearntServer | undefined
}

type Intern = (server: string, kind: ListKind, list: MemberList) => MemberList

/**
 * Chooses the first value of an owner: what the gateway itself has learnt of the server, if the owner's capabilities are
 * the same; what the same principal was sent with others; what the gateway has learnt. Never what other principals were sent.
 */
export const createSeeds = (members: readonly Member[], intern: Intern): Seeds => {
  const byServer = new Map(members.map(member => [member.server, member]))
  const shown = new WeakMap<LearntList, MemberList>()

  const show = (member: Member, kind: ListKind, revision: Revision, learnt: LearntList): MemberList => {
    const list = shown.get(learnt) ?? intern(member.server, kind, showLearnt(member, kind, revision, learnt))
    shown.set(learnt, list)
    return list
  }

  /** What the server lists to clients with the capabilities of this owner, if that is known. */
  const ownOf = ({ member, learnt }: FoundServer, owner: string): LearntServer | undefined => {
    if (!learnt) return undefined
    return isListedAlike(owner, learnt) ? learnt : member.learnt?.byClient?.get(publicKeyIn(owner))
  }

  /** While a server is down there is nothing to start with: its lists are served only where they were fetched before. */
  const find = (server: string): FoundServer | undefined => {
    const member = byServer.get(server)
    return member?.isUp() ? { member, learnt: member.learnt?.get() } : undefined
  }

  return {
    list: (server, kind, owner, sibling) => {
      const found = find(server)
      if (!found) return undefined
      const { member, learnt } = found
      const own = ownOf(found, owner)
      const list = (own ?? learnt)?.lists[kind]
      if (!learnt || !list) return sibling && { value: sibling }
      if (sibling && !own && !isOfOtherEra(owner, learnt.revision, sibling.revision)) return { value: sibling }
      // A fetch may have to start a process, so it waits until a list this old would be fetched again.
      const hints = own && member.isProcess ? list.hints : undefined
      return { value: show(member, kind, (own ?? learnt).revision, list), hints }
    },
    discovery: (server, owner, sibling) => {
      const found = find(server)
      if (!found) return undefined
      const own = ownOf(found, owner)
      const hints = own && found.member.isProcess ? hintsOf(own) : undefined
      if (sibling && !hints) return { value: sibling }
      const learnt = own ?? found.learnt
      return learnt && { value: { revision: learnt.revision, result: learnt.discovery }, hints }
    },
  }
}

/** Undefined: it was read before the gateway was started. */
const hintsOf = ({ lists }: LearntServer): CacheHints | undefined => {
  const read = Object.values(lists).find(({ hints }) => hints)
  return read?.hints && { ...read.hints, ttlMs: undefined } // a list's `ttlMs` says nothing about the rest
}

const keyWithout = (revision: Revision): string => publicKeyOf({ revision, capabilities: Json.empty })

/** The gateway's own capabilities are empty: a caller with the same, in an era that the server has, gets the same list. */
const isListedAlike = (owner: string, { revision }: LearntServer): boolean => {
  const key = publicKeyIn(owner)
  return key === keyWithout(MODERN) || (!isModern(revision) && key === keyWithout(NEWEST_LEGACY))
}

/** A modern caller of a server of both eras does not get what its legacy clients got, which may be another list. */
const isOfOtherEra = (owner: string, learnt: Revision, sibling: Revision): boolean =>
  publicKeyIn(owner).startsWith('modern ') && isModern(learnt) && !isModern(sibling)
