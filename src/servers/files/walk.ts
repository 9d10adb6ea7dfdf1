import type { Signal } from '../../protocol/cancellation.ts'
import { Rejected } from './paths.ts'
import type { FolderEntry, FoundPath, Root } from './root.ts'

const IGNORED: ReadonlySet<string> = new Set(['.git', 'node_modules'])
const MAX_DEPTH = 64

/** The limits of one walk; the walk counts them down. */
export interface Budget {
  entries: number
  readonly until: number // as performance.now() counts
  isSpent: boolean // the walk stopped early
}

export const createWalkBudget = (entries: number, ms: number): Budget => ({
  entries,
  until: performance.now() + ms,
  isSpent: false,
})

interface WalkOptions {
  readonly recursive: boolean
  readonly includeIgnored: boolean
  readonly budget: Budget
  readonly signal: Signal
}

/** Everything below a folder, level by level, sorted by name. Links to folders are listed and not followed. */
export async function* walk(root: Root, from: FoundPath, options: WalkOptions): AsyncGenerator<FolderEntry> {
  const { budget, signal } = options
  let level: FolderEntry[] = [{ name: '', path: from.path, kind: 'folder', isLink: false }]
  for (let depth = 0; level.length > 0; depth++) {
    const next: FolderEntry[] = []
    for (const folder of level) {
      for (const entry of await entriesOf(root, folder, depth === 0, budget)) {
        if (signal.reason) throw new Rejected('The call was cancelled')
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
    if (depth === MAX_DEPTH && next.length > 0) budget.isSpent = true
    level = depth === MAX_DEPTH ? [] : next
  }
}

/** In any case, because some file systems ignore it. */
const isIgnored = ({ name }: FolderEntry): boolean => IGNORED.has(name.toLowerCase())

/** The entries of one folder; one that was removed or is unreadable is empty, unless the walk began there. */
const entriesOf = async (root: Root, folder: FolderEntry, isFirst: boolean, budget: Budget): Promise<FolderEntry[]> => {
  try {
    const found = await root.find(folder.path)
    return await root.list(found, budget.entries + 1)
  } catch (error) {
    if (isFirst || !(error instanceof Rejected)) throw error
    return []
  }
}
