import { createHash } from 'node:crypto'
import type { ToolBudget } from '../../config/tool-list.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { OnWait } from '../catalog/catalog.ts'
import type { ListKind } from '../catalog/list-kinds.ts'
import type { ListItem, MergedList, ShownItem, ShownList } from '../catalog/merged-list.ts'
import type { MergedLists, MergedView, ShownView } from '../catalog/merged-lists.ts'
import { chooseTools } from './choose-tools.ts'
import { type GatewayTool, gatewayToolItems, gatewayToolNames } from './gateway-tools.ts'

interface ShownListsOptions {
  readonly lists: MergedLists
  readonly budget?: ToolBudget | undefined
  readonly isTrimmed: boolean // definitions are listed without some of their parts
  /** `<server>/<tool>`, the most used first; the same array until the choice changes. */
  readonly mostUsed?: (() => readonly string[]) | undefined
}

interface BudgetedList {
  readonly mostUsed: readonly string[]
  readonly list: ShownList
  readonly whole: ShownList // with the tools that `list` leaves out
}

const NONE: readonly string[] = []

/** The lists as clients get them: a list of tools above the budget is replaced by a short one. */
export class ShownLists {
  readonly #options: ShownListsOptions
  readonly #budgeted = new WeakMap<MergedList, BudgetedList>()

  constructor(options: ShownListsOptions) {
    this.#options = options
  }

  /** Whether lists of tools may differ from the merged ones. */
  get #changes(): boolean {
    return this.#options.budget !== undefined || this.#options.isTrimmed
  }

  /** The list for a client; `isWhole` for one that also wants the tools that the budget leaves out. */
  view(caller: Caller, kind: ListKind, isWhole: boolean, onWait?: OnWait): ShownView | Promise<ShownView> {
    const view = this.#options.lists.view(caller, kind, onWait)
    if (kind !== 'tools' || !this.#changes) return view
    const show = (made: MergedView): ShownView => {
      const { list, whole } = this.#shown(made.list, caller)
      return { ...made, list: isWhole ? whole : list }
    }
    return view instanceof Promise ? view.then(show) : show(view)
  }

  /** The hash of the cached list as clients see it; empty if there is none. */
  cachedHash(caller: Caller, kind: ListKind): string {
    const list = this.#options.lists.cached(caller, kind)
    if (!list || kind !== 'tools' || !this.#changes) return list?.hash ?? ''
    return this.#shown(list, caller).list.hash
  }

  /** Whether the cached list of tools leaves out some of them. */
  isShortened(caller: Caller): boolean {
    const list = this.#options.budget && this.#options.lists.cached(caller, 'tools')
    return list !== undefined && this.#shown(list, caller).list.leftOut !== undefined
  }

  #shown(list: MergedList, { revision }: Caller): BudgetedList {
    const { budget, isTrimmed, mostUsed: usage } = this.#options
    const mostUsed = usage?.() ?? NONE
    const known = this.#budgeted.get(list)
    if (known?.mostUsed === mostUsed) return known
    const chosen = budget && chooseTools(list.items.map(choosable), budget, mostUsed)
    const ownTools = (wanted?: readonly GatewayTool[]) => gatewayToolItems(gatewayToolNames(list), revision, wanted)
    const own = chosen ? ownTools() : isTrimmed && list.items.length > 0 ? ownTools(['describe_tool']) : []
    const made: BudgetedList = {
      mostUsed,
      list: chosen ? shortList(list, own, chosen) : withOwnTools(list, own),
      whole: withOwnTools(list, own, isTrimmed),
    }
    this.#budgeted.set(list, made)
    return made
  }
}

/** Reads the size when it is needed: most tools of a long list are never measured. */
const choosable = (item: ListItem) => ({
  item,
  server: item.member.server,
  original: item.original,
  exposed: item.exposed,
  get size() {
    return item.size
  },
})

/** The list after the gateway's own tools; `isWhole`: with definitions as they were before trimming. */
const withOwnTools = (list: MergedList, own: ShownList['items'], isWhole = false): ShownList => {
  if (own.length === 0) return list
  return {
    items: [...own, ...(isWhole ? list.items.map(wholeItem) : list.items)],
    missingServers: list.missingServers,
    bytes: list.bytes,
    get hash() {
      return [list.hash, isWhole, ...own.map(({ exposed }) => exposed)].join(' ')
    },
  }
}

const wholeItem = (item: ListItem): ShownItem => ({
  exposed: item.exposed,
  member: item.member,
  get definition() {
    return item.whole
  },
})

const shortList = (
  list: MergedList,
  own: ShownList['items'],
  favourites: readonly { readonly item: ListItem }[],
): ShownList => {
  const items = [...own, ...favourites.map(({ item }) => item)]
  let hash: string | undefined
  return {
    items,
    missingServers: list.missingServers,
    bytes: list.bytes,
    leftOut: list.items.length - favourites.length,
    get hash() {
      hash ??= hashOf(items)
      return hash
    },
  }
}

const hashOf = (items: ShownList['items']): string => {
  const hash = createHash('sha256')
  for (const { definition } of items) hash.update('\n').update(definition.toBytes())
  return hash.digest('base64url')
}
