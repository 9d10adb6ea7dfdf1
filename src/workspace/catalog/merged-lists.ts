import type { WorkspaceConfig } from '../../config/snapshot.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { Policy } from '../../protocol/policy.ts'
import { shortKey } from '../../protocol/short-key.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Member } from '../member.ts'
import { createRulesOf, type PolicyRules } from '../policy/policy.ts'
import { cacheOwnerOf } from './cache-scopes.ts'
import type { CachedList, Catalog } from './catalog.ts'
import { promisedUntil } from './freshness.ts'
import { buildMergedList, type ListPart } from './merged-list.ts'
import type { ListKind, ListView, MergedList } from './view.ts'

const MOST_VIEWS = 1000
const LONGEST_POLICY = 64 // characters in a key; a longer one is replaced by its hash
const MOST_VIEWS_EACH = 256 // of one principal
const IDLE_MS = 3_600_000

/** A shelf as it stands for some callers now. */
export interface MergedView {
  readonly list: MergedList
  readonly promisedUntil: number // how long its servers said that it holds
  readonly isPublic: boolean // it is the same for every principal
}

interface Kept extends MergedView {
  readonly stamp: number // of what it was made from
  readonly lookAgain: number // when something in it will have to be asked for again
}

interface Guess {
  readonly shelf: MergedList | undefined // undefined: nothing can be guessed
  readonly stamp: number
  readonly lookAgain: number
}

/** Makes the shelves of a workspace from its catalogue, once for all who may see the same. */
export class MergedLists implements ListView {
  readonly rulesOf: (caller: Caller) => PolicyRules
  readonly #config: WorkspaceConfig
  readonly #members: readonly Member[]
  readonly #catalog: Catalog
  readonly #views = new BoundedCache<Kept>(MOST_VIEWS, IDLE_MS, { mostPerGroup: MOST_VIEWS_EACH })
  readonly #unknown = new BoundedCache<number>(MOST_VIEWS, IDLE_MS, { mostPerGroup: MOST_VIEWS_EACH }) // of whom nothing was held at that stamp
  readonly #guesses = new BoundedCache<Guess>(MOST_VIEWS, IDLE_MS, { mostPerGroup: MOST_VIEWS_EACH })
  readonly #built = new Map<string, WeakRef<MergedList>>()

  constructor(config: WorkspaceConfig, members: readonly Member[], catalog: Catalog) {
    this.rulesOf = createRulesOf(config.policy)
    this.#config = config
    this.#members = members
    this.#catalog = catalog
  }

  get(caller: Caller, kind: ListKind): MergedList | Promise<MergedList> {
    const kept = this.#fresh(caller, kind)?.list ?? this.#likely(caller, kind)
    if (kept) return kept
    const view = this.view(caller, kind)
    return view instanceof Promise ? view.then(({ list: shelf }) => shelf) : view.list
  }

  async refetch(caller: Caller, kind: ListKind): Promise<MergedList> {
    const now = Date.now()
    const flights = this.#held(caller, kind).flatMap(held => {
      const isDue = held.member.isUp() && held.entry.nextFetchAt <= now
      return isDue ? this.#catalog.refresh(held, caller, kind) : (held.entry.pendingFetch ?? [])
    })
    await settledWithin(flights, this.#catalog.times.listTimeoutMs)
    return this.#look(caller, kind, false).list
  }

  cached(caller: Caller, kind: ListKind): MergedList | undefined {
    const key = this.#keyOf(caller, kind)
    const stamp = this.#catalog.versionOf(caller)
    const kept = this.#views.get(key)
    if (kept?.stamp === stamp) return kept.list
    if (this.#unknown.get(key) === stamp) return undefined
    const held = this.#held(caller, kind)
    if (held.some(({ entry: holding }) => holding.value)) return this.#keep(key, caller, kind, held, 0).list
    this.#unknown.set(key, stamp, groupOf(caller))
    return undefined
  }

  /** What callers are shown: at once, unless nothing at all was ever heard of a server that may answer in time. */
  view(caller: Caller, kind: ListKind): MergedView | Promise<MergedView> {
    const kept = this.#fresh(caller, kind)
    if (kept) return kept
    const held = this.#held(caller, kind)
    this.#renew(held, caller, kind)
    const awaited = held.filter(
      ({ member, entry: holding }) =>
        !holding.value &&
        holding.pendingFetch &&
        holding.failure === undefined &&
        this.#catalog.slowServers.isWorthWaiting(member, caller),
    )
    if (awaited.length === 0) return this.#look(caller, kind, true)
    const flights = awaited.map(({ entry: holding }) => holding.pendingFetch)
    return settledWithin(flights, this.#catalog.times.listTimeoutMs).then(() => {
      for (const { member, entry: holding } of awaited)
        if (!holding.value && holding.pendingFetch) this.#catalog.slowServers.waitedInVain(member, caller)
      return this.#look(caller, kind, true)
    })
  }

  #fresh(caller: Caller, kind: ListKind): MergedView | undefined {
    const kept = this.#views.get(this.#keyOf(caller, kind))
    const isFresh = kept && kept.stamp === this.#catalog.versionOf(caller) && kept.lookAgain > Date.now()
    return isFresh ? kept : undefined
  }

  /**
   * Most servers list the same whatever a client can do: that is enough to find whose a name is, and a call neither
   * waits for servers it does not concern nor makes them start. Undefined where it is not needed or says too little.
   */
  #likely(caller: Caller, kind: ListKind): MergedList | undefined {
    const key = this.#keyOf(caller, kind)
    const now = Date.now()
    const guess = this.#guesses.get(key)
    if (guess && guess.stamp === this.#catalog.versionOf(caller) && guess.lookAgain > now) return guess.shelf
    const held = this.#held(caller, kind)
    if (held.every(({ entry: holding }) => holding.value)) return undefined
    const kin = this.#catalog.siblingLists(caller, kind)
    const parts = held.map(({ member, entry: holding }) => ({ member, list: holding.value ?? kin(member) }))
    const shelf = parts.every(({ member, list }) => list || !member.isUp())
      ? this.#build(caller, kind, parts)
      : undefined
    const lookAgain = now + this.#catalog.times.fetchIntervalMs
    this.#guesses.set(key, { shelf, stamp: this.#catalog.versionOf(caller), lookAgain }, groupOf(caller))
    return shelf
  }

  /** Asks in the background for what is not fresh any more. */
  #renew(held: readonly CachedList[], caller: Caller, kind: ListKind): void {
    const now = Date.now()
    for (const each of held) {
      const { member, entry: holding } = each
      if (holding.freshUntil <= now && holding.nextFetchAt <= now && member.isUp())
        void this.#catalog.refresh(each, caller, kind)
    }
  }

  #look(caller: Caller, kind: ListKind, isServed: boolean): MergedView {
    const held = this.#held(caller, kind)
    if (isServed) for (const { entry: holding } of held) holding.wasOmitted ||= holding.value === undefined
    const soon = Date.now() + this.#catalog.times.fetchIntervalMs
    const lookAgain = Math.min(...held.map(({ entry: holding }) => Math.max(holding.freshUntil, soon)))
    return this.#keep(this.#keyOf(caller, kind), caller, kind, held, lookAgain)
  }

  #keep(key: string, caller: Caller, kind: ListKind, held: readonly CachedList[], lookAgain: number): MergedView {
    const parts = held.map(({ member, entry: holding }) => ({ member, list: holding.value }))
    const hints = held.flatMap(({ entry: holding }) => holding.hints ?? [])
    const isWhole = hints.length > 0 && hints.length === held.length
    const kept: Kept = {
      list: this.#build(caller, kind, parts),
      promisedUntil: hints.length > 0 ? Math.min(Date.now() + IDLE_MS, ...hints.map(promisedUntil)) : 0,
      isPublic: !caller.policy && isWhole && hints.every(({ isPublic }) => isPublic),
      stamp: this.#catalog.versionOf(caller),
      lookAgain,
    }
    this.#views.set(key, kept, groupOf(caller))
    return kept
  }

  #build(caller: Caller, kind: ListKind, parts: readonly ListPart[]): MergedList {
    const { revision } = caller
    const key = [kind, revision, policyKey(caller.policy), ...parts.map(({ list }) => list?.id ?? '-')].join('\n')
    const known = this.#built.get(key)?.deref()
    if (known) return known
    const { names: style, servers } = this.#config
    const shelf = buildMergedList(parts, { kind, revision, style, servers, rules: this.rulesOf(caller) })
    if (this.#built.size >= MOST_VIEWS)
      for (const [old, reference] of this.#built) if (!reference.deref()) this.#built.delete(old)
    this.#built.set(key, new WeakRef(shelf))
    return shelf
  }

  #held(caller: Caller, kind: ListKind): CachedList[] {
    const rules = this.rulesOf(caller)
    const members = rules.isOpen ? this.#members : this.#members.filter(({ server }) => rules.allowsServer(server))
    return this.#catalog.cachedLists(members, caller, kind)
  }

  #keyOf(caller: Caller, kind: ListKind): string {
    const session = this.#catalog.hasSessionLists(caller) ? caller.session : ''
    return `${kind}\n${caller.revision}\n${session}\n${policyKey(caller.policy)}\n${cacheOwnerOf(caller)}`
  }
}

const groupOf = ({ principal }: Caller): string => (principal === undefined ? '' : `=${principal}`)

const policies = new WeakMap<Policy, string>()

/** Equal for equal policies. */
export const policyKey = (policy: Policy | undefined): string => {
  if (!policy) return ''
  const key = policies.get(policy) ?? shortKey(JSON.stringify(policy), LONGEST_POLICY)
  policies.set(policy, key)
  return key
}

/** Settles when all have, or when their time is up. */
export const settledWithin = (work: readonly (Promise<unknown> | undefined)[], ms: number): Promise<void> =>
  new Promise(resolve => {
    if (work.length === 0) return resolve()
    const timer = setTimeout(resolve, ms)
    void Promise.allSettled(work).then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
