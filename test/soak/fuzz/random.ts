/** A source of pseudo-random decisions; the same seed makes the same ones. */
export interface Random {
  /** A number from 0 up to, not including, 1. */
  next(): number
  /** A whole number from 0 up to, not including, `most`. */
  below(most: number): number
  chance(probability: number): boolean
  pick<T>(choices: readonly T[]): T
}

/** Mulberry32: 32 bits of state, good enough to spread mutations. */
export const createRandom = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (most: number): number => Math.floor(next() * most)
  return {
    next,
    below,
    chance: probability => next() < probability,
    pick: choices => {
      if (choices.length === 0) throw new Error('nothing to pick from')
      return choices[below(choices.length)] as (typeof choices)[number]
    },
  }
}

/** A seed of its own for part of a run, so that the part can be repeated alone. */
export const subSeed = (seed: number, ...path: readonly number[]): number =>
  path.reduce((mixed, part) => Math.imul(mixed ^ (part + 0x9e3779b9), 0x85ebca6b) >>> 0, seed >>> 0)
