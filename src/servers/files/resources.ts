import { NEVER } from '../../protocol/cancellation.ts'
import type { PlainObject } from '../../wire/json/json.ts'
import { Json } from '../../wire/json/json.ts'
import { failure } from '../define/failures.ts'
import { type Resource, resource, type Template, template } from '../define/resources.ts'
import { quoted, Refused } from './paths.ts'
import type { Root } from './root.ts'
import { decodeText, isBinary, mimeTypeOf } from './text.ts'
import { fileUri } from './uris.ts'
import { createBudget, walk } from './walk.ts'

const MOST_BYTES = 16 * 1024 * 1024
const MOST_LISTED = 1000
const MOST_SEEN = 20_000
const LONGEST_MS = 5000
const MOST_PROPOSED = 200

/** Every file of the project as a resource. */
export const fileTemplate = (root: Root): Template =>
  template({
    uriTemplate: 'file:///{+path}',
    name: 'project-file',
    title: 'A file of the project',
    description: 'Any file of the project by its path from the project root: text as it is, everything else in base64',
    complete: { path: typed => propose(root, typed) },
    read: ({ path }, _call, uri) => readContents(root, path, uri),
  })

const readContents = async (root: Root, path: string, uri: string): Promise<readonly PlainObject[]> => {
  try {
    const bytes = await root.read(await root.find(path), MOST_BYTES)
    const mimeType = mimeTypeOf(path)
    if (isBinary(bytes))
      return [{ uri, mimeType: mimeType ?? 'application/octet-stream', blob: bytes.toString('base64') }]
    return [{ uri, mimeType: mimeType ?? 'text/plain', text: decodeText(bytes) }]
  } catch (error) {
    if (error instanceof Refused) throw failure('invalidParams', error.message, Json.of({ uri }))
    throw error
  }
}

/** Paths that go on from what was typed: the entries of its folder, folders with a slash behind them. */
const propose = async (root: Root, typed: string): Promise<string[]> => {
  const folder = typed.slice(0, typed.lastIndexOf('/') + 1)
  try {
    const entries = await root.list(await root.find(folder), MOST_SEEN)
    return entries
      .map(({ path, kind }) => (kind === 'folder' ? `${path}/` : path))
      .filter(path => path.startsWith(typed))
      .slice(0, MOST_PROPOSED)
  } catch (error) {
    if (error instanceof Refused) return []
    throw error
  }
}

/** The list of resources, as of the last look; the same array while nothing changed. */
export interface Shelf {
  current(): readonly Resource[]
  /** Looks again. */
  refresh(): Promise<void>
}

/** Keeps the first files of the project, level by level, for clients that choose from a list. */
export const createShelf = (root: Root): Shelf => {
  let shown: readonly Resource[] = []
  let key = ''
  let looking: Promise<void> | undefined

  const look = async (): Promise<void> => {
    const budget = createBudget(MOST_SEEN, LONGEST_MS)
    const options = { recursive: true, includeIgnored: false, budget, signal: NEVER }
    const paths: string[] = []
    for await (const entry of walk(root, await root.find(''), options)) {
      if (entry.kind === 'file') paths.push(entry.path)
      if (paths.length === MOST_LISTED) break
    }
    const next = paths.join('\n')
    if (next === key) return
    key = next
    shown = paths.map(path => listed(root, path))
  }

  return {
    current: () => shown,
    refresh: () => {
      looking ??= look().finally(() => {
        looking = undefined
      })
      return looking
    },
  }
}

const listed = (root: Root, path: string): Resource => {
  const uri = fileUri(path)
  const mimeType = mimeTypeOf(path)
  return resource({
    uri,
    name: path,
    description: `The file ${quoted(path)}`,
    ...(mimeType && { mimeType }),
    read: () => readContents(root, path, uri),
  })
}
