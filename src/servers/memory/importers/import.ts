import { createReadStream } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { Refusal } from '../refusal.ts'
import type { MemoryStore } from '../store.ts'
import { filesIn } from './folder.ts'
import { detect, FORMATS, type Format, type Shape, shapeFor } from './formats.ts'
import { uuidFor } from './item.ts'
import { type Counts, type Keep, keepItems, NOTHING } from './keep.ts'
import { type Reading, readItems } from './read.ts'
import { linesOf, peek, textOf } from './text-stream.ts'

/** What to import: a file, a folder, or whatever a stream brings. */
export type Source = { readonly path: string } | { readonly stream: AsyncIterable<Uint8Array> }

export interface ImportOptions extends Keep {
  readonly source: Source
  readonly format: string | undefined
  readonly given: string | undefined // the group somebody asked for
  readonly group: string // of what names none
  /** Hears how much was read, in bytes or, in a folder, in files. */
  readonly progress: (done: number) => void
}

const HEAD = 256 * 1024
const LONGEST_LINE = 64 * 1024 * 1024

/** Imports whatever it is. What is there already stays as it is, so doing it again does no harm. */
export const importFrom = async (options: ImportOptions): Promise<Counts> => {
  const { source } = options
  const format = formatFrom(options.format)
  if ('stream' in source) return importStream(source.stream, { name: 'import' }, format, options)
  const path = await realpath(source.path).catch(refusePath(source.path))
  const { mtimeMs, isFolder } = await stat(path).then(found => ({
    mtimeMs: found.mtimeMs,
    isFolder: found.isDirectory(),
  }))
  if (isFolder) return importFolder(path, format, options)
  return importStream(createReadStream(path), { name: basename(path), path, modified: mtimeMs }, format, options)
}

const formatFrom = (given: string | undefined): Format | undefined => {
  const format = FORMATS.find(format => format === given)
  if (given === undefined || format) return format
  throw new Refusal(`There is no format ${JSON.stringify(given)}; there are ${FORMATS.join(', ')}`)
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'permission denied',
}

const refusePath = (path: string) => (cause: NodeJS.ErrnoException) => {
  throw new Refusal(`Cannot read ${path}: ${REASONS[cause.code ?? ''] ?? cause.message}`)
}

interface Known {
  readonly name: string
  readonly path?: string
  readonly modified?: number
}

const importStream = async (
  bytes: AsyncIterable<Uint8Array>,
  { name, path, modified }: Known,
  format: Format | undefined,
  options: ImportOptions,
): Promise<Counts> => {
  const { progress, given, group } = options
  const { head, isWhole, all } = await peek(textOf(counted(bytes, progress)), HEAD)
  const shape = shapeOf(format, head, isWhole, name)
  if (shape.format === 'dragoman') return importOwn(options.store, all, options)
  const reading: Reading = {
    name,
    given,
    group: given ?? group,
    // What came through a pipe has no place; its beginning tells it from others.
    key: path ?? uuidFor(head.slice(0, 1000)),
    modified: Math.trunc(modified ?? Date.now()),
  }
  const counts = await keepItems(readItems(all, { ...shape, format: shape.format }, reading), options)
  return { ...counts, format: shape.format }
}

const shapeOf = (format: Format | undefined, head: string, isWhole: boolean, name: string): Shape => {
  if (head.trim() === '') throw new Refusal('There is nothing in it to import')
  if (head.includes('\0')) throw new Refusal('It looks binary (it has a zero byte); import a text, Markdown or JSON')
  const shape = format ? shapeFor(format, head) : detect(head, isWhole, name)
  if (shape) return shape
  throw new Refusal(`It is not clear what this is; say so with --format (${FORMATS.join(', ')})`)
}

const counted = async function* (bytes: AsyncIterable<Uint8Array>, progress: (done: number) => void) {
  let done = 0
  for await (const chunk of bytes) {
    yield chunk
    done += chunk.byteLength
    progress(done)
  }
}

const importOwn = async (store: MemoryStore, texts: AsyncIterable<string>, options: ImportOptions): Promise<Counts> => {
  if (options.given !== undefined)
    throw new Refusal('An export names the groups of everything in it; import it without a group')
  const imported = await store.importLines(textLines(texts, options.signal), options.by)
  const isInterrupted = options.signal?.aborted ?? false
  return { ...NOTHING, ...imported, created: imported.episodes, format: 'dragoman', isInterrupted }
}

/** Once somebody has had enough it ends as if the file did: what was read is kept. */
const textLines = async function* (texts: AsyncIterable<string>, signal: AbortSignal | undefined) {
  for await (const { text } of linesOf(texts, LONGEST_LINE)) {
    if (signal?.aborted) return
    yield text
  }
}

const importFolder = async (folder: string, format: Format | undefined, options: ImportOptions): Promise<Counts> => {
  if (format !== undefined && format !== 'markdown' && format !== 'text')
    throw new Refusal(`A folder is imported as text and Markdown; import a file of ${format} by itself`)
  let total: Counts = { ...NOTHING, format: 'folder' }
  let done = 0
  for await (const { path, name, isDocument } of filesIn(folder)) {
    if (options.signal?.aborted) return { ...total, isInterrupted: true }
    const found = isDocument ? await importDocument(path, name, options) : { ...NOTHING, passedOver: 1 }
    total = sum(total, found, name)
    options.progress(++done)
  }
  return total
}

/** One file of many: what is wrong with it is said, and the others go on. */
const importDocument = async (path: string, name: string, options: ImportOptions): Promise<Counts> => {
  try {
    const { mtimeMs, size } = await stat(path)
    if (size === 0) return { ...NOTHING, passedOver: 1 }
    const quiet = { ...options, progress: () => {} }
    return await importStream(createReadStream(path), { name, path, modified: mtimeMs }, documentFormat(name), quiet)
  } catch (error) {
    const isOurs = error instanceof Refusal || (error as NodeJS.ErrnoException).code !== undefined
    if (!isOurs) throw error
    return { ...NOTHING, faults: [{ where: '', why: (error as Error).message }], faulty: 1 }
  }
}

const documentFormat = (name: string): Format => (/\.(txt|text)$/i.test(name) ? 'text' : 'markdown')

const MOST_FAULTS = 20

const sum = (a: Counts, b: Counts, file: string): Counts => ({
  format: a.format,
  created: a.created + b.created,
  replaced: a.replaced + b.replaced,
  removed: a.removed + b.removed,
  same: a.same + b.same,
  entities: a.entities + b.entities,
  facts: a.facts + b.facts,
  passedOver: a.passedOver + b.passedOver,
  faults: [
    ...a.faults,
    ...b.faults.map(({ where, why }) => ({ where: where ? `${file}, ${where}` : file, why })),
  ].slice(0, MOST_FAULTS),
  faulty: a.faulty + b.faulty,
  isInterrupted: a.isInterrupted || b.isInterrupted,
})
