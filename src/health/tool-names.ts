import type { Json } from '../wire/json/json.ts'

const MOST_NAMES = 1000
const LONGEST_NAME = 128 // characters
const MOST_UNREAD = 8 // pages
const LARGEST_UNREAD = 256 * 1024 // bytes of one page

/** The names of the tools a server has listed. Metrics label calls of other names alike: callers may invent any. */
export class ToolNames {
  readonly #names = new Set<string>()
  readonly #unread: Json[] = []

  add(name: string | undefined): void {
    if (name !== undefined && name.length <= LONGEST_NAME && this.#names.size < MOST_NAMES) this.#names.add(name)
  }

  /** Keeps a page of the list. It is parsed when an unknown name is looked up, which is mostly never. */
  addPage(result: Json): void {
    const pieces: Buffer[] = []
    result.appendTo(pieces)
    if (pieces.reduce((sum, { length }) => sum + length, 0) > LARGEST_UNREAD) return this.#read(result)
    if (this.#unread.push(result.compact()) > MOST_UNREAD) this.#unread.shift()
  }

  has(name: string): boolean {
    if (this.#names.has(name)) return true
    if (this.#unread.length === 0) return false
    for (const result of this.#unread.splice(0)) this.#read(result)
    return this.#names.has(name)
  }

  #read(result: Json): void {
    for (const tool of result.get('tools')?.elements() ?? []) this.add(tool.get('name')?.asString())
  }
}
