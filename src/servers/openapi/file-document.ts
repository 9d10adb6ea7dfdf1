import { createHash } from 'node:crypto'
import { open, realpath } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { DocumentProblem } from './plan.ts'

/** Where a document comes from. */
export interface DocumentSource {
  readonly url: string // that references in it are relative to
  /** The text; undefined if it is the same as the last time, unless `isWanted`. Rejects with DocumentProblem or RpcFailure. */
  read(isWanted: boolean): Promise<string | undefined>
  /** Another file that the document refers to. Rejects with an Error that says why it is not read. */
  readPart(url: string): Promise<string>
  /** Calls `onChange` when the document may have changed. Returns a function that ends this. */
  watch(onChange: () => void): () => void
}

/** The largest document, with the files it refers to. */
export const MOST_DOCUMENT_BYTES = 32 * 1024 * 1024
const MIB = 1024 * 1024
const TOO_LARGE = `has a document of more than ${MOST_DOCUMENT_BYTES / MIB} MiB, which is the limit: remove what you do not need`

const ORIGIN = 'http://document.invalid' // references cannot lead out of the folder: `..` ends at the root of a URL

const READ_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
}

/** A document on this machine; it may refer to files in its folder and the folders in that. */
export const fileDocument = (
  file: string,
  watchFile: (file: string, onChange: () => void) => () => void,
): DocumentSource => {
  const folder = dirname(file)
  const hashes = new Map<string, string>() // of the files that were read, by path
  const stops = new Map<string, () => void>() // of those that are watched
  let changed: (() => void) | undefined

  const keep = (path: string, text: string): void => {
    hashes.set(path, hashOf(text))
    if (changed && !stops.has(path)) stops.set(path, watchFile(path, changed))
  }

  const readPart = async (url: string): Promise<string> => {
    const { origin, pathname } = new URL(url)
    if (origin !== ORIGIN) throw new Error('only files in the folder of the document are read')
    const path = join(folder, decodeURIComponent(pathname))
    if (hashes.size > MOST_PARTS) throw new Error(`the document refers to more than ${MOST_PARTS} files`)
    try {
      const [real, home] = await Promise.all([realpath(path), realpath(folder)])
      if (relative(home, real).split(sep)[0] === '..') throw new Error('it is outside of the folder of the document')
      const text = await readBounded(path)
      keep(path, text)
      return text
    } catch (cause) {
      throw new Error(reasonOf(cause))
    }
  }

  /** Whether a file that the document refers to is another than it was. */
  const hasChangedPart = async (): Promise<boolean> => {
    for (const [path, hash] of hashes)
      if (path !== file && hashOf(await readBounded(path).catch(() => '')) !== hash) return true
    return false
  }

  return {
    url: `${ORIGIN}/${encodeURIComponent(basename(file))}`,
    read: async isWanted => {
      const text = await readBounded(file).catch(cause => {
        if (cause instanceof DocumentProblem) throw cause
        throw new DocumentProblem(`has a document that cannot be read: ${file}: ${reasonOf(cause)}`)
      })
      if (!isWanted && hashes.get(file) === hashOf(text) && !(await hasChangedPart())) return undefined
      hashes.clear()
      keep(file, text)
      return text
    },
    readPart,
    watch: onChange => {
      changed = onChange
      for (const path of hashes.keys()) stops.set(path, watchFile(path, onChange))
      return () => {
        changed = undefined
        for (const stop of stops.values()) stop()
        stops.clear()
      }
    },
  }
}

const MOST_PARTS = 200

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64')

const readBounded = async (file: string): Promise<string> => {
  const handle = await open(file)
  try {
    const { size } = await handle.stat()
    if (size > MOST_DOCUMENT_BYTES) throw new DocumentProblem(TOO_LARGE)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}

const reasonOf = (cause: unknown): string => {
  const { code = '', message } = cause as NodeJS.ErrnoException
  return READ_ERRORS[code] ?? message
}
