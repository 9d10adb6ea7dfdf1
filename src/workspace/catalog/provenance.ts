import type { Caller } from '../../protocol/exchange.ts'
import { shortKey } from '../../protocol/short-key.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Member } from '../member.ts'

const MOST_CALLERS = 500
const MOST_EACH = 1000
const MOST_SESSIONS = 10_000
const FOREVER = Number.POSITIVE_INFINITY
const LONGEST = 64 // characters of a word that is remembered as it is

/** Which member something came from that one caller was given: links, tasks and apps. */
export interface Provenance {
  record(caller: Caller, word: string, member: Member): void
  memberOf(caller: Caller, word: string): Member | undefined
  /** Whose app this caller looked at last. */
  recordApp(caller: Caller, member: Member): void
  appMember(caller: Caller): Member | undefined
  /** Which members a session has talked to. */
  recordSession(session: string, member: Member): void
  sessionMembers(session: string): readonly Member[]
}

/** Under which name things are remembered for a caller; somebody unknown without a session is not remembered at all. */
export const callerKey = ({ principal, session }: Caller): string | undefined => {
  if (principal !== undefined) return `p${principal}`
  return session === undefined ? undefined : `s${session}`
}

/** What a word is remembered as: whoever is given long ones shall not need more room. */
export const shortened = (word: string): string => shortKey(word, LONGEST)

/** What is remembered, by the names of servers: it outlives their members when the configuration changes. */
export interface ProvenanceStore {
  readonly words: BoundedCache<BoundedCache<string>>
  readonly apps: BoundedCache<string>
  readonly uses: BoundedCache<Set<string>>
}

export const createProvenanceStore = (): ProvenanceStore => ({
  words: new BoundedCache(MOST_CALLERS, FOREVER),
  apps: new BoundedCache(MOST_CALLERS, FOREVER),
  uses: new BoundedCache(MOST_SESSIONS, FOREVER),
})

export const createProvenance = (
  { words, apps, uses }: ProvenanceStore,
  memberOf: (server: string | undefined) => Member | undefined,
): Provenance => ({
  record: (caller, word, { server }) => {
    const who = callerKey(caller)
    if (who === undefined) return
    const mine = words.get(who) ?? new BoundedCache<string>(MOST_EACH, FOREVER)
    mine.set(shortened(word), server)
    words.set(who, mine)
  },
  memberOf: (caller, word) => {
    const who = callerKey(caller)
    return who === undefined ? undefined : memberOf(words.get(who)?.get(shortened(word)))
  },
  recordApp: (caller, { server }) => {
    const who = callerKey(caller)
    if (who !== undefined) apps.set(who, server)
  },
  appMember: caller => {
    const who = callerKey(caller)
    return who === undefined ? undefined : memberOf(apps.get(who))
  },
  recordSession: (session, { server }) => {
    const before = uses.get(session)
    if (before) before.add(server)
    else uses.set(session, new Set([server]))
  },
  sessionMembers: session => [...(uses.get(session) ?? [])].flatMap(server => memberOf(server) ?? []),
})
