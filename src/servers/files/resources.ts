import { NEVER } from '../../protocol/cancellation.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { failure } from '../define/failures.ts'
import { type Resource, resource, type Template, template } from '../define/resources.ts'
import { fileUri, quoted, Rejected } from './paths.ts'
import type { Root } from './root.ts'
import { decodeText, isBinary, mimeTypeOf } from './text.ts'
import { createWalkBudget, walk } from './walk.ts'

const MAX_BYTES = 16 * 1024 * 1024
const MAX_LISTED = 1000
const MAX_SEEN = 20_000
const WALK_MS = 5000
const MAX_PROPOSED = 200

/** Every file of the project as a resource. */
export const fileTemplate = (root: Root): Template =>
  template({
    uriTemplate: 'file:///{+path}',
    name: 'project-file',
    title: 'A file of the project',
    description: 'Any file of the project by its path from the project root: text as text, other files as base64',
    complete: { path: typed => completePath(root, typed) },
    read: ({ path }, _call, uri) => readContents(root, path, uri),
  })

const readContents = async (root: Root, path: string, uri: string): Promise<readonly PlainObject[]> => {
  try {
    const bytes = await root.read(await root.find(path), MAX_BYTES)
    const mimeType = mimeTypeOf(path)
    if (isBinary(bytes))
      return [{ uri, mimeType: mimeType ?? 'application/octet-stream', blob: bytes.toString('base64') }]
    return [{ uri, mimeType: mimeType ?? 'text/plain', text: decodeText(bytes) }]
  } catch (error) {
    if (error instanceof Rejected) throw failure('invalidParams', error.message, Json.of({ uri }))
    throw error
  }
}

/** The entries of the folder that was typed, folders with a slash at the end. */
const completePath = async (root: Root, typed: string): Promise<string[]> => {
  const folder = typed.slice(0, typed.lastIndexOf('/') + 1)
  try {
    const entries = await root.list(await root.find(folder), MAX_SEEN)
    return entries
      .map(({ path, kind }) => (kind === 'folder' ? `${path}/` : path))
      .filter(path => path.startsWith(typed))
      .slice(0, MAX_PROPOSED)
  } catch (error) {
    if (error instanceof Rejected) return []
    throw error
  }
}

/** The files listed as resources. */
export interface FileList {
  /** The list of the last refresh: the same array while nothing has changed. */
  current(): readonly Resource[]
  refresh(): Promise<void>
}

/** Lists the first files of the project, level by level. */
export const createFileList = (root: Root): FileList => {
  let listed: readonly Resource[] = []
  let key = ''
  const refreshing = new SingleFlight()

  const readList = async (): Promise<void> => {
    const budget = createWalkBudget(MAX_SEEN, WALK_MS)
    const options = { recursive: true, includeIgnored: false, budget, signal: NEVER }
    const paths: string[] = []
    for await (const entry of walk(root, await root.find(''), options)) {
      if (entry.kind === 'file') paths.push(entry.path)
      if (paths.length === MAX_LISTED) break
    }
    const next = paths.join('\n')
    if (next === key) return
    key = next
    listed = paths.map(path => fileResource(root, path))
  }

  return {
    current: () => listed,
    refresh: () => refreshing.run(readList),
  }
}

const fileResource = (root: Root, path: string): Resource => {
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
