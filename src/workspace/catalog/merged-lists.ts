import type { WorkspaceConfig } from '../../config/snapshot.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { Policy } from '../../protocol/policy.ts'
import { shortKey } from '../../protocol/short-key.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Member } from '../member.ts'
import { createRulesOf, type Rules } from '../policy/policy.ts'
import { ownerOf } from './cache-scopes.ts'
import type { Catalog, Held } from './catalog.ts'
import { promisedUntil } from './freshness.ts'
import { buildMergedList, type Part } from './merged-list.ts'
import type { Kind, ListView, MergedList } from './view.ts'

const MOST_VIEWS = 1000
const LONGEST_POLICY = 64 // characters in a key; a longer one is replaced by its hash
const MOST_VIEWS_EACH = 256 // of one principal
const IDLE_MS = 3_600_000

/** A shelf as it stands for some callers now. */
export interface View {
  readonly shelf: MergedList
  readonly promisedUntil: number // how long its servers said that it holds
  readonly isPublic: boolean // it is the same for every principal
}

interface Kept extends View {
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
  readonly rulesOf: (caller: Caller) => Rules
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

  of(caller: Caller, kind: Kind): MergedList | Promise<MergedList> {
    const kept = this.#fresh(caller, kind)?.shelf ?? this.#likely(caller, kind)
    if (kept) return kept
    const view = this.view(caller, kind)
    return view instanceof Promise ? view.then(({ shelf }) => shelf) : view.shelf
  }

  async again(caller: Caller, kind: Kind): Promise<MergedList> {
    const now = Date.now()
    const flights = this.#held(caller, kind).flatMap(held => {
      const isDue = held.member.isUp() && held.holding.nextAt <= now
      return isDue ? this.#catalog.refresh(held, caller, kind) : (held.holding.flight ?? [])
    })
    await settled(flights, this.#catalog.times.listDeadlineMs)
    return this.#look(caller, kind, false).shelf
  }

  known(caller: Caller, kind: Kind): MergedList | undefined {
    const key = this.#keyOf(caller, kind)
    const stamp = this.#catalog.stampOf(caller)
    const kept = this.#views.get(key)
    if (kept?.stamp === stamp) return kept.shelf
    if (this.#unknown.get(key) === stamp) return undefined
    const held = this.#held(caller, kind)
    if (held.some(({ holding }) => holding.value)) return this.#keep(key, caller, kind, held, 0).shelf
    this.#unknown.set(key, stamp, groupOf(caller))
    return undefined
  }

  /** What callers are shown: at once, unless nothing at all was ever heard of a server that may answer in time. */
  view(caller: Caller, kind: Kind): View | Promise<View> {
    const kept = this.#fresh(caller, kind)
    if (kept) return kept
    const held = this.#held(caller, kind)
    this.#renew(held, caller, kind)
    const awaited = held.filter(
      ({ member, holding }) =>
        !holding.value &&
        holding.flight &&
        holding.failure === undefined &&
        this.#catalog.patience.isWorthWaiting(member, caller),
    )
    if (awaited.length === 0) return this.#look(caller, kind, true)
    const flights = awaited.map(({ holding }) => holding.flight)
    return settled(flights, this.#catalog.times.listDeadlineMs).then(() => {
      for (const { member, holding } of awaited)
        if (!holding.value && holding.flight) this.#catalog.patience.waitedInVain(member, caller)
      return this.#look(caller, kind, true)
    })
  }

  #fresh(caller: Caller, kind: Kind): View | undefined {
    const kept = this.#views.get(this.#keyOf(caller, kind))
    const isFresh = kept && kept.stamp === this.#catalog.stampOf(caller) && kept.lookAgain > Date.now()
    return isFresh ? kept : undefined
  }

  /**
   * Most servers list the same whatever a client can do: that is enough to find whose a name is, and a call neither
   * waits for servers it does not concern nor makes them start. Undefined where it is not needed or says too little.
   */
  #likely(caller: Caller, kind: Kind): MergedList | undefined {
    const key = this.#keyOf(caller, kind)
    const now = Date.now()
    const guess = this.#guesses.get(key)
    if (guess && guess.stamp === this.#catalog.stampOf(caller) && guess.lookAgain > now) return guess.shelf
    const held = this.#held(caller, kind)
    if (held.every(({ holding }) => holding.value)) return undefined
    const kin = this.#catalog.kinLists(caller, kind)
    const parts = held.map(({ member, holding }) => ({ member, list: holding.value ?? kin(member) }))
    const shelf = parts.every(({ member, list }) => list || !member.isUp())
      ? this.#build(caller, kind, parts)
      : undefined
    const lookAgain = now + this.#catalog.times.againMs
    this.#guesses.set(key, { shelf, stamp: this.#catalog.stampOf(caller), lookAgain }, groupOf(caller))
    return shelf
  }

  /** Asks in the background for what is not fresh any more. */
  #renew(held: readonly Held[], caller: Caller, kind: Kind): void {
    const now = Date.now()
    for (const each of held) {
      const { member, holding } = each
      if (holding.freshUntil <= now && holding.nextAt <= now && member.isUp())
        void this.#catalog.refresh(each, caller, kind)
    }
  }

  #look(caller: Caller, kind: Kind, isServed: boolean): View {
    const held = this.#held(caller, kind)
    if (isServed) for (const { holding } of held) holding.wasMissed ||= holding.value === undefined
    const soon = Date.now() + this.#catalog.times.againMs
    const lookAgain = Math.min(...held.map(({ holding }) => Math.max(holding.freshUntil, soon)))
    return this.#keep(this.#keyOf(caller, kind), caller, kind, held, lookAgain)
  }

  #keep(key: string, caller: Caller, kind: Kind, held: readonly Held[], lookAgain: number): View {
    const parts = held.map(({ member, holding }) => ({ member, list: holding.value }))
    const hints = held.flatMap(({ holding }) => holding.hints ?? [])
    const isWhole = hints.length > 0 && hints.length === held.length
    const kept: Kept = {
      shelf: this.#build(caller, kind, parts),
      promisedUntil: hints.length > 0 ? Math.min(Date.now() + IDLE_MS, ...hints.map(promisedUntil)) : 0,
      isPublic: !caller.policy && isWhole && hints.every(({ isPublic }) => isPublic),
      stamp: this.#catalog.stampOf(caller),
      lookAgain,
    }
    this.#views.set(key, kept, groupOf(caller))
    return kept
  }

  #build(caller: Caller, kind: Kind, parts: readonly Part[]): MergedList {
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

  #held(caller: Caller, kind: Kind): Held[] {
    const rules = this.rulesOf(caller)
    const members = rules.isOpen ? this.#members : this.#members.filter(({ server }) => rules.allowsServer(server))
    return this.#catalog.heldBy(members, caller, kind)
  }

  #keyOf(caller: Caller, kind: Kind): string {
    const session = this.#catalog.isApart(caller) ? caller.session : ''
    return `${kind}\n${caller.revision}\n${session}\n${policyKey(caller.policy)}\n${ownerOf(caller)}`
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
export const settled = (work: readonly (Promise<unknown> | undefined)[], ms: number): Promise<void> =>
  new Promise(resolve => {
    if (work.length === 0) return resolve()
    const timer = setTimeout(resolve, ms)
    void Promise.allSettled(work).then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
