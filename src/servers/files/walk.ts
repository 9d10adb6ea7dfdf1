import type { Signal } from '../../protocol/cancellation.ts'
import { Refused } from './paths.ts'
import type { Entry, Found, Root } from './root.ts'

const IGNORED: ReadonlySet<string> = new Set(['.git', 'node_modules'])
const DEEPEST = 64

/** What a walk may cost; the walk counts it down. */
export interface Budget {
  entries: number
  readonly until: number // in milliseconds of performance.now()
  /** True once the walk ended before its end. */
  isSpent: boolean
}

export const createBudget = (entries: number, ms: number): Budget => ({
  entries,
  until: performance.now() + ms,
  isSpent: false,
})

interface Options {
  readonly recursive: boolean
  readonly includeIgnored: boolean
  readonly budget: Budget
  readonly signal: Signal
}

/** Everything below a folder, level by level and by name. Links to folders are shown and not followed. */
export async function* walk(root: Root, from: Found, options: Options): AsyncGenerator<Entry> {
  const { budget, signal } = options
  let level: Entry[] = [{ name: '', path: from.path, kind: 'folder', isLink: false }]
  for (let depth = 0; level.length > 0; depth++) {
    const next: Entry[] = []
    for (const folder of level) {
      for (const entry of await entriesOf(root, folder, depth === 0, budget)) {
        if (signal.reason) throw new Refused('The call was cancelled')
        if (budget.entries-- <= 0 || performance.now() > budget.until) {
          budget.isSpent = true
          return
        }
        if (options.recursive && entry.kind === 'folder' && !options.includeIgnored && isIgnored(entry)) continue
        yield entry
        if (entry.kind === 'folder' && !entry.isLink) next.push(entry)
      }
    }
    if (!options.recursive) return
    if (depth === DEEPEST && next.length > 0) budget.isSpent = true
    level = depth === DEEPEST ? [] : next
  }
}

/** By any case, because some file systems make no difference. */
const isIgnored = ({ name }: Entry): boolean => IGNORED.has(name.toLowerCase())

/** The entries of one folder; a folder that went away or may not be read costs only itself, unless it was asked for. */
const entriesOf = async (root: Root, folder: Entry, isFirst: boolean, budget: Budget): Promise<Entry[]> => {
  try {
    const found = await root.find(folder.path)
    return await root.list(found, budget.entries + 1)
  } catch (error) {
    if (isFirst || !(error instanceof Refused)) throw error
    return []
  }
}
