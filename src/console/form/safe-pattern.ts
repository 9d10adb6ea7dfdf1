import { patternCost } from './pattern-cost.ts'
import { type PatternSequence, readPattern } from './pattern-tree.ts'

const LONGEST_PATTERN = 1000
const LONGEST_TEXT = 10_000
const MOST_STEPS = 5_000_000 // of one text: some tens of milliseconds
const MOST_STEPS_TOGETHER = 20_000_000

interface CheckedPattern {
  readonly expression: RegExp
  readonly tree: readonly PatternSequence[]
  readonly costs: Map<number, number> // by the length of the text
}

/** The steps that all texts of one value may take together. */
export class PatternBudget {
  #left = MOST_STEPS_TOGETHER

  spend(steps: number): boolean {
    if (!(steps <= this.#left)) return false // also if no number is known
    this.#left -= steps
    return true
  }
}

/**
 * Whether a text matches a pattern of a server; undefined if that is not checked here. A pattern that could take long with a
 * text of this length would stop the page, so it is left to the server.
 */
export const testPattern = (pattern: string, text: string, budget = new PatternBudget()): boolean | undefined => {
  if (pattern.length > LONGEST_PATTERN || text.length > LONGEST_TEXT) return undefined
  const checked = readOnce(pattern, budget)
  const steps = checked && costOnce(checked, text.length, budget)
  if (!checked || steps === undefined || !(steps <= MOST_STEPS) || !budget.spend(steps)) return undefined
  return checked.expression.test(text)
}

const cache = new Map<string, CheckedPattern | undefined>()

const readOnce = (pattern: string, budget: PatternBudget): CheckedPattern | undefined => {
  if (cache.has(pattern)) return cache.get(pattern)
  if (!budget.spend(estimateSteps(pattern))) return undefined
  if (cache.size > 500) cache.clear()
  const expression = tryFlags(pattern, 'u') ?? tryFlags(pattern, '')
  const tree = expression && readPattern(pattern, expression.unicode) // what the same text means depends on the flag
  const checked = tree && { expression, tree, costs: new Map<number, number>() }
  cache.set(pattern, checked)
  return checked
}

const costOnce = (
  { expression, tree, costs }: CheckedPattern,
  length: number,
  budget: PatternBudget,
): number | undefined => {
  const known = costs.get(length)
  if (known !== undefined) return known
  if (!budget.spend(estimateSteps(expression.source))) return undefined
  if (costs.size > 500) costs.clear()
  const cost = patternCost(tree, length)
  costs.set(length, cost)
  return cost
}

/** What reading a pattern or estimating its cost takes, as many steps of a match: groups in one another are read again. */
const estimateSteps = (pattern: string): number => pattern.length ** 2

const tryFlags = (pattern: string, flags: string): RegExp | undefined => {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return undefined // a dialect that this browser does not read
  }
}
