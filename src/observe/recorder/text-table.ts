/** The number of texts that have no number of their own. */
export const UNLISTED = 1

const MOST = 10_000
const LONGEST = 200 // characters

/** Numbers for texts that occur again and again: names of methods, tools, servers, workspaces, clients. 0 stands for no text. */
export class TextTable {
  readonly #numbers = new Map<string, number>()
  readonly #texts: (string | undefined)[] = [undefined, undefined]

  numberOf(text: string | undefined): number {
    if (text === undefined) return 0
    return this.#numbers.get(text) ?? this.#add(text)
  }

  textOf(number: number): string | undefined {
    return this.#texts[number]
  }

  clear(): void {
    this.#numbers.clear()
    this.#texts.length = 2
  }

  #add(text: string): number {
    if (text.length > LONGEST || this.#texts.length >= MOST) return UNLISTED
    const kept = Buffer.from(text).toString() // a copy: a part of a text keeps the whole one in memory
    const number = this.#texts.push(kept) - 1
    this.#numbers.set(kept, number)
    return number
  }
}
