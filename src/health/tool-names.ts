import type { Json } from '../wire/json/json.ts'

const MOST_NAMES = 1000
const LONGEST_NAME = 128 // characters
const MOST_UNREAD = 8 // pages
const LARGEST_UNREAD = 256 * 1024 // bytes of one page

/** The names of the tools a server has listed, to tell them from names that callers invent. */
export class ToolNames {
  readonly #known = new Set<string>()
  readonly #unread: Json[] = []

  add(name: string | undefined): void {
    if (name !== undefined && name.length <= LONGEST_NAME && this.#known.size < MOST_NAMES) this.#known.add(name)
  }

  /** A page of the list has passed. It is read when a name is looked for that is not known: mostly never. */
  addPage(result: Json): void {
    const pieces: Buffer[] = []
    result.appendTo(pieces)
    if (pieces.reduce((sum, { length }) => sum + length, 0) > LARGEST_UNREAD) return this.#read(result)
    if (this.#unread.push(result.compact()) > MOST_UNREAD) this.#unread.shift()
  }

  has(name: string): boolean {
    if (this.#known.has(name)) return true
    if (this.#unread.length === 0) return false
    for (const result of this.#unread.splice(0)) this.#read(result)
    return this.#known.has(name)
  }

  #read(result: Json): void {
    for (const tool of result.get('tools')?.elements() ?? []) this.add(tool.get('name')?.asString())
  }
}
