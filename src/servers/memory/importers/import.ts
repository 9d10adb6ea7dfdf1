import { createReadStream } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { uuidFor } from '../ids.ts'
import { RequestError } from '../input-checks.ts'
import { detectShape, FORMATS, type Format, type StreamShape, shapeFor } from './formats.ts'
import { readItems } from './read.ts'
import { EMPTY_REPORT, type ImportReport, type ImportTarget, MOST_FAULTS, storeItems } from './store-items.ts'
import { decodeChunks, linesOf, peek } from './text-stream.ts'

export interface ImportOptions extends ImportTarget {
  readonly source:
    | { readonly path: string }
    | { readonly stream: AsyncIterable<Uint8Array>; readonly file?: ImportFile | undefined }
  readonly format: string | undefined // detected when absent
  readonly given: string | undefined // the group the caller asked for
  readonly group: string // the default group
  /** Called with the bytes, or the files of a folder, that were read. */
  readonly progress: (done: number) => void
}

const HEAD = 256 * 1024
const LONGEST_LINE = 64 * 1024 * 1024

/** Imports a file, a folder or a stream. What is stored already stays as it is, so an import can be repeated. */
export const importFrom = async (options: ImportOptions): Promise<ImportReport> => {
  const { source } = options
  const format = readFormat(options.format)
  if ('stream' in source) return importStream(source.stream, source.file ?? { name: 'import' }, format, options)
  const path = await realpath(source.path).catch(rejectPath(source.path))
  const found = await stat(path)
  if (found.isDirectory()) return importFolder(path, format, options)
  const file = { name: basename(path), path, modified: found.mtimeMs }
  return importStream(createReadStream(path), file, format, options)
}

const readFormat = (given: string | undefined): Format | undefined => {
  const format = FORMATS.find(format => format === given)
  if (given === undefined || format) return format
  throw new RequestError(`There is no format ${JSON.stringify(given)}; there are ${FORMATS.join(', ')}`)
}

const PATH_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'permission denied',
}

const rejectPath = (path: string) => (cause: NodeJS.ErrnoException) => {
  throw new RequestError(`Cannot read ${path}: ${PATH_ERRORS[cause.code ?? ''] ?? cause.message}`)
}

/** What is known of the file that a stream comes from. */
interface ImportFile {
  readonly name: string
  readonly path?: string | undefined // identifies it when it is imported again
  readonly modified?: number | undefined
}

const importStream = async (
  bytes: AsyncIterable<Uint8Array>,
  { name, path, modified }: ImportFile,
  format: Format | undefined,
  options: ImportOptions,
): Promise<ImportReport> => {
  const { progress, given, group } = options
  const { head, isWhole, all } = await peek(decodeChunks(counted(bytes, progress)), HEAD)
  const shape = shapeOf(format, head, isWhole, name)
  if (shape.format === 'dragoman') return importExport(all, options)
  const origin = {
    name,
    givenGroup: given,
    group: given ?? group,
    key: path ?? uuidFor(head.slice(0, 1000)), // a stream has no path; its beginning identifies it
    modified: Math.trunc(modified ?? Date.now()),
  }
  const report = await storeItems(readItems(all, { ...shape, format: shape.format }, origin), options)
  return { ...report, format: shape.format }
}

const shapeOf = (format: Format | undefined, head: string, isWhole: boolean, name: string): StreamShape => {
  if (head.trim() === '') throw new RequestError('There is nothing in it to import')
  if (head.includes('\0'))
    throw new RequestError('It looks binary (it has a zero byte); import a text, Markdown or JSON')
  const shape = format ? shapeFor(format, head) : detectShape(head, isWhole, name)
  if (shape) return shape
  throw new RequestError(`It is not clear what this is; give its format (${FORMATS.join(', ')})`)
}

const counted = async function* (bytes: AsyncIterable<Uint8Array>, progress: (done: number) => void) {
  let done = 0
  for await (const chunk of bytes) {
    yield chunk
    done += chunk.byteLength
    progress(done)
  }
}

/** Imports an export of this program. */
const importExport = async (texts: AsyncIterable<string>, options: ImportOptions): Promise<ImportReport> => {
  const { store, by, given, signal } = options
  if (given !== undefined)
    throw new RequestError('An export names the groups of everything in it; import it without a group')
  const imported = await store.importLines(linesUntil(texts, signal), by)
  const isInterrupted = signal?.aborted ?? false
  return { ...EMPTY_REPORT, ...imported, created: imported.episodes, format: 'dragoman', isInterrupted }
}

/** Ends when the signal aborts, as if the file ended there: what was read is stored. */
const linesUntil = async function* (texts: AsyncIterable<string>, signal: AbortSignal | undefined) {
  for await (const lines of linesOf(texts, LONGEST_LINE))
    for (const { text } of lines) {
      if (signal?.aborted) return
      yield text
    }
}

const DOCUMENT = /\.(md|markdown|mdx|txt|text)$/i

/** All files below a folder by name, except hidden ones and installed packages; names are relative, with slashes. */
const filesIn = async function* (folder: string, at = folder): AsyncGenerator<{ path: string; name: string }> {
  const entries = await readdir(at, { withFileTypes: true })
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
    const path = join(at, entry.name)
    if (entry.isDirectory()) yield* filesIn(folder, path)
    else if (entry.isFile()) yield { path, name: relative(folder, path).replaceAll(sep, '/') }
  }
}

const importFolder = async (
  folder: string,
  format: Format | undefined,
  options: ImportOptions,
): Promise<ImportReport> => {
  if (format !== undefined && format !== 'markdown' && format !== 'text')
    throw new RequestError(`A folder is imported as text and Markdown; import a file of ${format} by itself`)
  let total: ImportReport = { ...EMPTY_REPORT, format: 'folder' }
  let done = 0
  for await (const { path, name } of filesIn(folder)) {
    if (options.signal?.aborted) return { ...total, isInterrupted: true }
    total = sum(total, await importDocument(path, name, options), name)
    options.progress(++done)
  }
  return total
}

/** Imports one file of a folder; if that fails, the report says why and the others follow. */
const importDocument = async (path: string, name: string, options: ImportOptions): Promise<ImportReport> => {
  try {
    const skipped = { ...EMPTY_REPORT, passedOver: 1 }
    if (!DOCUMENT.test(name)) return skipped
    const { mtimeMs, size } = await stat(path)
    if (size === 0) return skipped
    const format = /\.(txt|text)$/i.test(name) ? 'text' : 'markdown'
    const silent = { ...options, progress: () => {} }
    return await importStream(createReadStream(path), { name, path, modified: mtimeMs }, format, silent)
  } catch (error) {
    const isExpected = error instanceof RequestError || (error as NodeJS.ErrnoException).code !== undefined
    if (!isExpected) throw error
    return { ...EMPTY_REPORT, faults: [{ where: '', why: (error as Error).message }], faulty: 1 }
  }
}

const COUNTS = ['created', 'replaced', 'removed', 'same', 'entities', 'facts', 'passedOver', 'faulty'] as const

const sum = (total: ImportReport, report: ImportReport, file: string): ImportReport => {
  const faults = report.faults.map(({ where, why }) => ({ where: where ? `${file}, ${where}` : file, why }))
  return {
    ...total,
    ...Object.fromEntries(COUNTS.map(key => [key, total[key] + report[key]])),
    faults: [...total.faults, ...faults].slice(0, MOST_FAULTS),
    isInterrupted: total.isInterrupted || report.isInterrupted,
  }
}
