import { readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'

const DOCUMENT = /\.(md|markdown|mdx|txt|text)$/i

/** A file of a folder that can be read as a text, or one that is passed over. */
export interface Found {
  readonly path: string
  readonly name: string // relative to the folder, with slashes on every platform
  readonly isDocument: boolean
}

/** Every file below a folder, in the order of their names; what is hidden and what programs install is left alone. */
export const filesIn = async function* (folder: string, at = folder): AsyncGenerator<Found> {
  const entries = await readdir(at, { withFileTypes: true })
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
    const path = join(at, entry.name)
    if (entry.isDirectory()) yield* filesIn(folder, path)
    else if (entry.isFile())
      yield { path, name: relative(folder, path).replaceAll(sep, '/'), isDocument: DOCUMENT.test(entry.name) }
  }
}
