import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, opendir, readlink, realpath } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { quoted, Rejected, segmentsOf } from './paths.ts'
import { createProtectedPaths, isWithin } from './protected.ts'

/** A file or folder that a path leads to. */
export interface FoundPath {
  readonly path: string // relative to the root, with slashes; '' is the root itself
  readonly real: string // absolute, links resolved
  readonly kind: 'file' | 'folder'
  readonly size: number
}

/** A file or folder in a folder. */
export interface FolderEntry {
  readonly name: string
  readonly path: string
  readonly kind: 'file' | 'folder'
  readonly isLink: boolean
}

/** One folder of the machine, read-only. Nothing outside it can be reached. */
export interface Root {
  /** Throws if the folder does not exist. */
  check(): Promise<void>
  /** Resolves a path; throws Rejected if it does not exist or leads outside. */
  find(path: string): Promise<FoundPath>
  /** The bytes of a file; throws Rejected if it is larger than `limit`. */
  read(file: FoundPath, limit: number): Promise<Buffer>
  /** The entries of a folder, sorted, at most `max`; links that lead outside, devices and pipes are left out. */
  list(folder: FoundPath, max: number): Promise<FolderEntry[]>
  /** False for dot files and the gateway's own files, whether they exist or not. */
  isShown(path: string): boolean
}

/** What a root hides. */
export interface RootOptions {
  readonly showHidden?: boolean | undefined // names that begin with a dot
  readonly protectedPaths?: (() => readonly string[]) | undefined // absolute; always hidden
}

/** Opens a root; the folder need not exist yet. */
export const createRoot = (folder: string, { showHidden = false, protectedPaths }: RootOptions = {}): Root => {
  const protection = createProtectedPaths(protectedPaths ?? (() => []))
  let base: string | undefined

  const isHidden = (segments: readonly string[]): boolean => !showHidden && segments.some(name => name.startsWith('.'))

  const openBase = async (): Promise<string> => {
    await protection.refresh()
    if (base !== undefined) return base
    const real = await realpath(folder).catch(() => undefined)
    if (real === undefined || !(await lstat(real)).isDirectory())
      throw new Rejected('The root of this files server is not a readable folder; check "root" in the configuration')
    if (protection.covers(real))
      throw new Rejected(
        'The root of this files server is inside a protected folder of the gateway; check "root" in the configuration',
      )
    base = real
    return real
  }

  const find = async (path: string): Promise<FoundPath> => {
    const segments = segmentsOf(path)
    if (isHidden(segments)) throw hiddenError(path)
    const top = await openBase()
    const real = await realpath(join(top, ...segments)).catch(error => reject(path, error))
    // Compared case-sensitively, as the file system spells the path: a sibling that differs in case is outside.
    if (!isWithin(top, real))
      throw new Rejected(`${quoted(path)} is refused: it is a link that leads outside the project`)
    if (isHidden(relative(top, real).split(sep))) throw hiddenError(path)
    const stats = await lstat(real).catch(error => reject(path, error))
    if (protection.covers(real, stats))
      throw new Rejected(`${quoted(path)} is refused: it belongs to the gateway itself`)
    return { path: segments.join('/'), real, kind: kindOf(path, stats), size: stats.size }
  }

  const read = async (file: FoundPath, limit: number): Promise<Buffer> => {
    if (file.kind === 'folder') throw new Rejected(`${quoted(file.path)} is a folder; list it with list_dir`)
    return withHandle(file, async handle => {
      await checkOpened(file, handle)
      return readAll(file, handle, limit)
    })
  }

  /** The path may lead elsewhere by now: what was opened must be what was found. */
  const checkOpened = async (found: FoundPath, handle: FileHandle): Promise<void> => {
    const opened = await handle.stat()
    kindOf(found.path, opened)
    const isSame = await readlink(linkTo(handle)).then(
      real => real === found.real && !protection.covers(real, opened),
      error => (hasNoLinks(error) ? isUnchanged(found, opened) : reject(found.path, error)),
    )
    if (!isSame) throw new Rejected(`${quoted(found.path)} changed while it was being opened; try again`)
  }

  const isUnchanged = async (found: FoundPath, opened: Stats): Promise<boolean> => {
    const now = await find(found.path)
    const there = await lstat(now.real).catch(error => reject(found.path, error))
    return now.real === found.real && there.ino === opened.ino && there.dev === opened.dev
  }

  const list = async (folder: FoundPath, max: number): Promise<FolderEntry[]> => {
    if (folder.kind === 'file') throw new Rejected(`${quoted(folder.path)} is a file; read it with read_file`)
    const isListed = (name: string): boolean => !isHidden([name]) && !protection.covers(join(folder.real, name))
    const names = await withHandle(folder, async handle => {
      const found = await readNames(folder, handle, max, isListed)
      await checkOpened(folder, handle)
      return found
    })
    const entries: FolderEntry[] = []
    for (const { name, kind } of names) {
      const path = folder.path === '' ? name : `${folder.path}/${name}`
      const target = kind === 'link' ? await find(path).catch(() => undefined) : undefined
      const entryKind = kind === 'link' ? target?.kind : kind
      if (entryKind) entries.push({ name, path, kind: entryKind, isLink: kind === 'link' })
    }
    return entries
  }

  const isShown = (path: string): boolean => {
    const segments = path.split('/')
    return !isHidden(segments) && !(base !== undefined && protection.covers(join(base, ...segments)))
  }

  return { check: async () => void (await openBase()), find, read, list, isShown }
}

const hiddenError = (path: string): Rejected =>
  new Rejected(
    `${quoted(path)} is refused: files and folders that begin with a dot are hidden; ` +
      'to show them, set "showHidden": true in the entry of this server',
  )

/** Opens what was found. The caller must check the handle, because the path may lead elsewhere by now. */
const withHandle = async <T>(found: FoundPath, use: (handle: FileHandle) => Promise<T>): Promise<T> => {
  // The file may have been replaced: a pipe must not block, a link must not be followed.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
  const handle = await open(found.real, flags).catch(error => reject(found.path, error))
  try {
    return await use(handle)
  } finally {
    await handle.close()
  }
}

/** On Linux, a link to the opened file, wherever its path leads by now. */
const linkTo = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`

/** Other systems have no such links. After any other error the path must not be used: it may have changed. */
const hasNoLinks = ({ code }: NodeJS.ErrnoException): boolean => code === 'ENOENT'

interface NamedEntry {
  readonly name: string
  readonly kind: FolderEntry['kind'] | 'link'
}

/** The wanted names in an opened folder, sorted, at most `max`. */
const readNames = async (
  folder: FoundPath,
  handle: FileHandle,
  max: number,
  isWanted: (name: string) => boolean,
): Promise<NamedEntry[]> => {
  const names: NamedEntry[] = []
  const options = { bufferSize: 256 }
  // On Linux this reads the opened folder itself. Elsewhere the path is opened a second time.
  const opened = await opendir(linkTo(handle), options)
    .catch(error => (hasNoLinks(error) ? opendir(folder.real, options) : Promise.reject(error)))
    .catch(error => reject(folder.path, error))
  for await (const item of opened) {
    const kind = item.isFile() ? 'file' : item.isDirectory() ? 'folder' : item.isSymbolicLink() ? 'link' : undefined
    if (kind && isWanted(item.name)) names.push({ name: item.name, kind })
    if (names.length >= max) break
  }
  return names.sort((a, b) => (a.name < b.name ? -1 : 1))
}

const kindOf = (path: string, stats: Stats): FoundPath['kind'] => {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'folder'
  throw new Rejected(`${quoted(path)} is refused: it is a device, a pipe or a socket`)
}

/** Reads to the end. The size is only a hint: the file may grow, and generated files (/sys) have size 0. */
const readAll = async (file: FoundPath, handle: FileHandle, limit: number): Promise<Buffer> => {
  let bytes = Buffer.allocUnsafe(Math.min(limit, file.size) + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length)
    length += bytesRead
    if (bytesRead === 0) return bytes.subarray(0, length)
    if (length > limit) throw new Rejected(`${quoted(file.path)} is larger than the limit of ${limit} bytes`)
    if (length === bytes.length) bytes = Buffer.concat([bytes], Math.min(limit + 1, Math.max(2 * length, 65_536)))
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'there is no such file or folder',
  ELOOP: 'its links lead in a circle',
  EACCES: 'the gateway may not read it',
  EPERM: 'the gateway may not read it',
  ENAMETOOLONG: 'the name is too long',
}

/** Throws an error that does not show where the root is on the machine. */
const reject = (path: string, error: NodeJS.ErrnoException): never => {
  throw new Rejected(`${quoted(path)} cannot be read: ${REASONS[error.code ?? ''] ?? error.code ?? 'unknown reason'}`)
}
