import type { WorkspaceConfig } from '../../config/snapshot.ts'
import { principalKey } from '../../protocol/callers.ts'
import { boundedKey } from '../../protocol/capabilities.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { Policy } from '../../protocol/policy.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Member } from '../member.ts'
import { createRulesOf, type PolicyRules } from '../policy/policy.ts'
import { cacheOwnerOf } from './cache-owner.ts'
import { type CachedList, type Catalog, type OnWait, wouldStart } from './catalog.ts'
import { promisedUntil } from './freshness.ts'
import type { ListKind } from './list-kinds.ts'
import { buildMergedList, type ListPart, type MergedList, type ShownList } from './merged-list.ts'

const MOST_VIEWS = 1000
const LONGEST_POLICY = 64 // characters in a key; a longer one is replaced by its hash
const MOST_VIEWS_EACH = 256 // of one principal
const IDLE_MS = 3_600_000

/** The merged lists that routes read. A caller's list contains only what the caller may see. */
export interface ListView {
  /** The cached list; a promise only where a server has not been listed yet. */
  get(caller: Caller, kind: ListKind): MergedList | Promise<MergedList>
  /** Fetches the list again: a caller used a name that is not in it. */
  refetch(caller: Caller, kind: ListKind): Promise<MergedList>
  /** The cached list, if there is one; sends no request and does not wait. */
  cached(caller: Caller, kind: ListKind): MergedList | undefined
}

/** A list with its caching hints. */
export interface ShownView {
  readonly list: ShownList
  readonly promisedUntil: number // how long its servers promised not to change it
  readonly isPublic: boolean // the same for every principal
}

export interface MergedView extends ShownView {
  readonly list: MergedList
}

interface CachedView extends MergedView {
  readonly version: number // of the catalog it was made from
  readonly checkAt: number // when some part of it must be fetched again
}

interface GuessedList {
  readonly list: MergedList | undefined // undefined: not enough is known
  readonly version: number
  readonly checkAt: number
}

const createViewCache = <T>(): BoundedCache<T> =>
  new BoundedCache<T>(MOST_VIEWS, IDLE_MS, { mostPerGroup: MOST_VIEWS_EACH })

/** Merges the lists of a workspace's catalog, once for all callers that see the same. */
export class MergedLists implements ListView {
  readonly rulesOf: (caller: Caller) => PolicyRules
  readonly #config: WorkspaceConfig
  readonly #members: readonly Member[]
  readonly #catalog: Catalog
  readonly #views = createViewCache<CachedView>()
  readonly #empty = createViewCache<number>() // the version at which nothing was cached
  readonly #guesses = createViewCache<GuessedList>()
  readonly #built = new Map<string, WeakRef<MergedList>>()

  constructor(config: WorkspaceConfig, members: readonly Member[], catalog: Catalog) {
    this.rulesOf = createRulesOf(config.policy)
    this.#config = config
    this.#members = members
    this.#catalog = catalog
  }

  get(caller: Caller, kind: ListKind): MergedList | Promise<MergedList> {
    const list = this.#freshView(caller, kind)?.list ?? this.#guess(caller, kind)
    if (list) return list
    const view = this.view(caller, kind)
    return view instanceof Promise ? view.then(made => made.list) : view.list
  }

  async refetch(caller: Caller, kind: ListKind): Promise<MergedList> {
    const now = Date.now()
    const fetches = this.#cachedLists(caller, kind).flatMap(cached => {
      const { member, entry } = cached
      const isAllowed = member.isUp() && entry.nextFetchAt <= now && !(entry.value && wouldStart(member, caller))
      return isAllowed ? this.#catalog.refresh(cached, caller, kind) : (entry.pendingFetch ?? [])
    })
    await this.#catalog.settle(fetches)
    return this.#currentView(caller, kind, false).list
  }

  cached(caller: Caller, kind: ListKind): MergedList | undefined {
    const key = this.#keyOf(caller, kind)
    const version = this.#catalog.versionOf(caller)
    const view = this.#views.get(key)
    if (view?.version === version) return view.list
    if (this.#empty.get(key) === version) return undefined
    const cached = this.#cachedLists(caller, kind)
    if (cached.some(({ entry }) => entry.value)) return this.#storeView(key, caller, kind, cached, 0).list
    this.#empty.set(key, version, principalKey(caller.principal))
    return undefined
  }

  /** The list for a client: at once, unless a server that may answer in time has never been listed. */
  view(caller: Caller, kind: ListKind, onWait?: OnWait): MergedView | Promise<MergedView> {
    const fresh = this.#freshView(caller, kind)
    if (fresh) return fresh
    const now = Date.now()
    const cached = this.#cachedLists(caller, kind)
    for (const each of cached)
      if (each.entry.isDue(now) && each.member.isUp())
        this.#catalog.fetchBehind(each, caller, () => this.#catalog.refresh(each, caller, kind))
    const waiting = this.#catalog.waitForFirst(cached, caller, onWait)
    return waiting ? waiting.then(() => this.#currentView(caller, kind, true)) : this.#currentView(caller, kind, true)
  }

  #freshView(caller: Caller, kind: ListKind): MergedView | undefined {
    const view = this.#views.get(this.#keyOf(caller, kind))
    const isFresh = view && view.version === this.#catalog.versionOf(caller) && view.checkAt > Date.now()
    return isFresh ? view : undefined
  }

  /**
   * Provisional lists are enough to find the server of a name, so that a call neither waits for nor starts servers it does
   * not concern. Undefined where they are not needed or too little is known.
   */
  #guess(caller: Caller, kind: ListKind): MergedList | undefined {
    const key = this.#keyOf(caller, kind)
    const now = Date.now()
    const guess = this.#guesses.get(key)
    if (guess && guess.version === this.#catalog.versionOf(caller) && guess.checkAt > now) return guess.list
    const cached = this.#cachedLists(caller, kind)
    if (cached.every(({ entry }) => entry.value && !entry.isProvisional)) return undefined
    const parts = cached.map(({ member, entry }) => ({ member, list: entry.value }))
    const isEnough = parts.every(({ member, list }) => list || !member.isUp())
    const list = isEnough ? this.#build(caller, kind, parts) : undefined
    const checkAt = now + this.#catalog.times.fetchIntervalMs
    this.#guesses.set(key, { list, version: this.#catalog.versionOf(caller), checkAt }, principalKey(caller.principal))
    return list
  }

  #currentView(caller: Caller, kind: ListKind, isForClient: boolean): MergedView {
    const cached = this.#cachedLists(caller, kind)
    if (isForClient) for (const { entry } of cached) entry.markOmitted()
    const earliest = Date.now() + this.#catalog.times.fetchIntervalMs
    const checkAt = Math.min(...cached.map(({ entry }) => Math.max(entry.freshUntil, earliest)))
    return this.#storeView(this.#keyOf(caller, kind), caller, kind, cached, checkAt)
  }

  #storeView(key: string, caller: Caller, kind: ListKind, cached: readonly CachedList[], checkAt: number): MergedView {
    const parts = cached.map(({ member, entry }) => ({ member, list: entry.value }))
    const hints = cached.flatMap(({ entry }) => entry.hints ?? [])
    const isComplete = hints.length > 0 && hints.length === cached.length
    const view: CachedView = {
      list: this.#build(caller, kind, parts),
      promisedUntil: hints.length > 0 ? Math.min(Date.now() + IDLE_MS, ...hints.map(promisedUntil)) : 0,
      isPublic: !caller.policy && isComplete && hints.every(({ isPublic }) => isPublic),
      version: this.#catalog.versionOf(caller),
      checkAt,
    }
    this.#views.set(key, view, principalKey(caller.principal))
    return view
  }

  #build(caller: Caller, kind: ListKind, parts: readonly ListPart[]): MergedList {
    const { revision } = caller
    const key = [kind, revision, policyKey(caller.policy), ...parts.map(({ list }) => list?.hash ?? '-')].join('\n')
    const known = this.#built.get(key)?.deref()
    if (known) return known
    const { names: style, nameLength, servers } = this.#config
    const list = buildMergedList(parts, { kind, revision, style, nameLength, servers, rules: this.rulesOf(caller) })
    if (this.#built.size >= MOST_VIEWS)
      for (const [old, reference] of this.#built) if (!reference.deref()) this.#built.delete(old)
    this.#built.set(key, new WeakRef(list))
    return list
  }

  #cachedLists(caller: Caller, kind: ListKind): CachedList[] {
    const rules = this.rulesOf(caller)
    const members = rules.isOpen ? this.#members : this.#members.filter(({ server }) => rules.allowsServer(server))
    return this.#catalog.cachedLists(members, caller, kind)
  }

  #keyOf(caller: Caller, kind: ListKind): string {
    const session = this.#catalog.hasSessionLists(caller) ? caller.session : ''
    return `${kind}\n${caller.revision}\n${session}\n${policyKey(caller.policy)}\n${cacheOwnerOf(caller)}`
  }
}

const policies = new WeakMap<Policy, string>()

/** Equal for equal policies. */
export const policyKey = (policy: Policy | undefined): string => {
  if (!policy) return ''
  const key = policies.get(policy) ?? boundedKey(JSON.stringify(policy), LONGEST_POLICY)
  policies.set(policy, key)
  return key
}
