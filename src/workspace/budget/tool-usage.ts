/** How often the tools of one workspace are called, and which of them are listed because of that. */
export interface ToolUsage {
  count(server: string, tool: string): void
  /** `<server>/<tool>`, the most used first; the same array until the choice changes, which is rarely. */
  mostUsed(): readonly string[]
  onChanged(listener: () => void): () => void
}

/** What is stored of one workspace. */
export interface UsageRecord {
  readonly calls: Readonly<Record<string, number>> // by `<server>/<tool>`; old calls count less
  readonly chosen: readonly string[]
  readonly chosenAt: number // Unix time in milliseconds; 0: never
}

export const NO_USAGE: UsageRecord = { calls: {}, chosen: [], chosenAt: 0 }

const MOST_TOOLS = 1000 // that are counted
const MOST_CHOSEN = 200
const FIRST_CHOICE = 10 // calls, after which there is a first choice
const INTERVAL_MS = 24 * 60 * 60_000 // between two choices: each changes the prompts that clients have cached
const FADING = 0.9 // how much of the count of a call is left after each choice
const LEAST = 0.5 // a lower count is dropped
const LOYALTY = 1.5 // another tool replaces a chosen one if it is used so much more

/** Adds calls, and chooses anew if it is time. */
export const addUsage = (before: UsageRecord, calls: ReadonlyMap<string, number>, now: number): UsageRecord => {
  const all = new Map(Object.entries(before.calls))
  for (const [tool, count] of calls) all.set(tool, (all.get(tool) ?? 0) + count)
  const isFirst = before.chosenAt === 0
  const isDue = isFirst ? sum(all.values()) >= FIRST_CHOICE : now - before.chosenAt >= INTERVAL_MS
  if (!isDue) return { ...before, calls: kept(all) }
  const old = new Set(before.chosen)
  const rank = (tool: string, count: number): number => count * (old.has(tool) ? LOYALTY : 1)
  const chosen = [...all]
    .sort(([a, x], [b, y]) => rank(b, y) - rank(a, x) || (a < b ? -1 : 1))
    .slice(0, MOST_CHOSEN)
    .map(([tool]) => tool)
  const faded = new Map([...all].map(([tool, count]) => [tool, count * FADING]))
  return { calls: kept(faded), chosen, chosenAt: now }
}

const sum = (counts: Iterable<number>): number => {
  let total = 0
  for (const count of counts) total += count
  return total
}

const kept = (calls: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries(
    [...calls]
      .filter(([, count]) => count >= LEAST)
      .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
      .slice(0, MOST_TOOLS),
  )
