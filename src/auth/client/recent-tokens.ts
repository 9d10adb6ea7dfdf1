import type { TokenRecord } from './token-records.ts'

const MOST = 100 // each text that is searched for them is searched for all

/**
 * The tokens that servers were used with last, in memory: also those that were replaced or whose login has ended, because what
 * was recorded with them can still be read.
 */
export class RecentTokens {
  readonly #tokens = new Set<string>() // in the order of use
  #list: readonly string[] | undefined

  /** The same array until there are others; the last is the latest. */
  get list(): readonly string[] {
    this.#list ??= [...this.#tokens]
    return this.#list
  }

  add({ access, refresh }: Pick<TokenRecord, 'access' | 'refresh'>): void {
    for (const token of [access, refresh]) if (token !== undefined) this.#add(token)
  }

  #add(token: string): void {
    if (!this.#tokens.delete(token)) this.#list = undefined
    this.#tokens.add(token)
    for (const oldest of this.#tokens) {
      if (this.#tokens.size <= MOST) return
      this.#tokens.delete(oldest)
    }
  }
}
