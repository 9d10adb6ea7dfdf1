import type { PatternNode, PatternSequence } from './pattern-tree.ts'

// An upper bound for the steps that a backtracking matcher takes: it tries every way to match the rest of a pattern.

interface Cost {
  readonly ways: number // in which a part can match; the rest is tried after each
  readonly steps: number // to find all of them
}

/** What can follow a part: one of these characters, or the end; undefined: anything. */
type Follow = ReadonlySet<string> | undefined

const NOTHING: Follow = new Set()
const MOST_FOLLOWING = 30 // characters that are looked at; of more, any is expected

/** At most so many steps are needed to test a text of that length. Infinity: no bound is known. */
export const patternCost = (alternatives: readonly PatternSequence[], length: number): number => {
  const { steps } = costOfAlternatives(alternatives, NOTHING, length)
  return steps * (alternatives.every(isAnchored) ? 1 : length + 1)
}

const isAnchored = ([first]: PatternSequence): boolean => first?.kind === 'assertion' && first.source === '^'

const costOfAlternatives = (alternatives: readonly PatternSequence[], follow: Follow, length: number): Cost => {
  let [ways, steps] = [0, 0]
  for (const sequence of alternatives) {
    const cost = costOfSequence(sequence, follow, length)
    ways += cost.ways
    steps += cost.steps
  }
  return { ways, steps }
}

const costOfSequence = (sequence: PatternSequence, follow: Follow, length: number): Cost => {
  let [ways, steps] = [1, 1]
  let after = follow
  for (const node of sequence.toReversed()) {
    const cost = costOf(node, after, length)
    steps = cost.steps + cost.ways * steps
    ways *= cost.ways
    after = firstOfNode(node, after)
  }
  return { ways, steps }
}

const costOf = (node: PatternNode, follow: Follow, length: number): Cost => {
  switch (node.kind) {
    case 'character':
    case 'assertion':
      return { ways: 1, steps: 1 }
    case 'group': {
      if (!node.isLookahead) return costOfAlternatives(node.alternatives, follow, length)
      // It matches once: what it has tried is not tried again for the rest.
      return { ways: 1, steps: costOfAlternatives(node.alternatives, NOTHING, length).steps }
    }
    case 'loop':
      return costOfLoop(node, follow, length)
  }
}

const costOfLoop = (
  { body, least, most }: Extract<PatternNode, { kind: 'loop' }>,
  follow: Follow,
  length: number,
): Cost => {
  const rounds = Math.min(most, length + least) // a round that matches nothing is the last one
  if (body.kind === 'character') {
    const reached = Math.min(most, length)
    // The text goes on with a character of the loop wherever it could end too early, so only one end is tried further.
    const isClear = follow !== undefined && !matchesOne(body.source, follow)
    return { ways: isClear ? 1 : Math.max(1, reached - least + 1), steps: 2 * (reached + 1) }
  }
  const { ways, steps } = costOf(body, union(firstOfNode(body, follow), follow), length)
  if (ways === 1) return { ways: Math.max(1, rounds - least + 1), steps: 1 + steps * rounds }
  let [all, inAll, current] = [least === 0 ? 1 : 0, 1, 1]
  for (let round = 1; round <= rounds && inAll < Infinity; round++) {
    inAll += current * steps
    current *= ways
    if (round >= least) all += current
  }
  return { ways: Math.max(1, all), steps: inAll }
}

/** What a text can go on with where this sequence and the rest after it are matched. */
const firstOf = (sequence: PatternSequence, rest: Follow): Follow =>
  sequence.reduceRight<Follow>((after, node) => firstOfNode(node, after), rest)

const firstOfNode = (node: PatternNode, after: Follow): Follow => {
  switch (node.kind) {
    case 'character':
      return node.literal === undefined ? undefined : new Set([node.literal])
    case 'assertion':
      return node.source === '$' ? NOTHING : undefined
    case 'group':
      if (node.isLookahead) return undefined
      return node.alternatives.map(each => firstOf(each, after)).reduce(union, NOTHING)
    case 'loop': {
      const begun = firstOfNode(node.body, after)
      return node.least === 0 ? union(begun, after) : begun
    }
  }
}

const union = (a: Follow, b: Follow): Follow => {
  const both = a && b && new Set([...a, ...b])
  return both && both.size <= MOST_FOLLOWING ? both : undefined
}

/** Whether a class has one of these characters, in one of its two readings. */
const matchesOne = (source: string, characters: ReadonlySet<string>): boolean =>
  ['u', ''].some(flags => {
    try {
      const expression = new RegExp(`^${source}$`, flags)
      return [...characters].some(character => expression.test(character))
    } catch {
      return flags === '' // it cannot be read, so any is expected
    }
  })
