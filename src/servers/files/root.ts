import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, opendir, readlink, realpath } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { quoted, Refused, segmentsOf } from './paths.ts'
import { createProtectedPaths, isWithin } from './protected.ts'

/** A file or folder inside the root. */
export interface Found {
  readonly path: string // relative to the root, with slashes; '' is the root itself
  readonly real: string // where it really is, links followed
  readonly kind: 'file' | 'folder'
  readonly size: number
  readonly modified: Date
}

/** What a folder holds. */
export interface Entry {
  readonly name: string
  readonly path: string
  readonly kind: 'file' | 'folder'
  readonly isLink: boolean
}

/** One folder of the machine, read-only; nothing outside it is reachable through this. */
export interface Root {
  /** Fails if the folder itself is not there. */
  check(): Promise<void>
  /** Follows a path; throws Refused where it leads nowhere or outside. */
  find(path: string): Promise<Found>
  /** The bytes of a file; throws Refused if it is larger than `limit`. */
  read(file: Found, limit: number): Promise<Buffer>
  /** The entries of a folder by name, at most `most`; links that lead outside, devices and pipes are not among them. */
  list(folder: Found, most: number): Promise<Entry[]>
  /** False for names this root does not show, whether they exist or not: dot files and the gateway's own files. */
  isShown(path: string): boolean
}

/** What a root leaves out. */
export interface RootOptions {
  readonly showHidden?: boolean | undefined // files and folders whose name begins with a dot
  readonly protectedPaths?: (() => readonly string[]) | undefined // absolute; never shown
}

/** Opens a root; the folder may appear later. */
export const createRoot = (folder: string, { showHidden = false, protectedPaths }: RootOptions = {}): Root => {
  const secret = createProtectedPaths(protectedPaths ?? (() => []))
  let base: string | undefined

  const isHidden = (segments: readonly string[]): boolean => !showHidden && segments.some(name => name.startsWith('.'))

  const home = async (): Promise<string> => {
    await secret.refresh()
    if (base !== undefined) return base
    const real = await realpath(folder).catch(() => undefined)
    if (real === undefined || !(await lstat(real)).isDirectory())
      throw new Refused(
        'The root of this files server is not a folder that can be read; check "root" in the configuration',
      )
    if (secret.covers(real))
      throw new Refused(
        'The root of this files server lies in the gateway\'s own folders; check "root" in the configuration',
      )
    base = real
    return real
  }

  const find = async (path: string): Promise<Found> => {
    const segments = segmentsOf(path)
    if (isHidden(segments)) throw hidden(path)
    const top = await home()
    const real = await realpath(join(top, ...segments)).catch(error => refuse(path, error))
    // Compared by case, on what the system itself says the name is: a sibling that differs by case is outside.
    if (!isWithin(top, real))
      throw new Refused(`${quoted(path)} is refused: it is a link that leads outside the project`)
    if (isHidden(relative(top, real).split(sep))) throw hidden(path)
    const stats = await lstat(real).catch(error => refuse(path, error))
    if (secret.covers(real, stats)) throw new Refused(`${quoted(path)} is refused: it belongs to the gateway itself`)
    return { path: segments.join('/'), real, kind: kindOf(path, stats), size: stats.size, modified: stats.mtime }
  }

  const read = async (file: Found, limit: number): Promise<Buffer> => {
    if (file.kind === 'folder') throw new Refused(`${quoted(file.path)} is a folder; list it with list_dir`)
    return withHandle(file, async handle => {
      await checkOpened(file, handle)
      return readAll(file, handle, limit)
    })
  }

  /** The path may have led elsewhere when it was opened: what was opened must be what was found. */
  const checkOpened = async (found: Found, handle: FileHandle): Promise<void> => {
    const opened = await handle.stat()
    kindOf(found.path, opened)
    const isSame = await readlink(linkTo(handle)).then(
      real => real === found.real && !secret.covers(real, opened),
      error => (hasNoLinks(error) ? isStillThere(found, opened) : refuse(found.path, error)),
    )
    if (!isSame) throw new Refused(`${quoted(found.path)} changed while it was being opened; try again`)
  }

  const isStillThere = async (found: Found, opened: Stats): Promise<boolean> => {
    const now = await find(found.path)
    const there = await lstat(now.real).catch(error => refuse(found.path, error))
    return now.real === found.real && there.ino === opened.ino && there.dev === opened.dev
  }

  const list = async (folder: Found, most: number): Promise<Entry[]> => {
    if (folder.kind === 'file') throw new Refused(`${quoted(folder.path)} is a file; read it with read_file`)
    const isListed = (name: string): boolean => !isHidden([name]) && !secret.covers(join(folder.real, name))
    const names = await withHandle(folder, async handle => {
      const found = await readNames(folder, handle, most, isListed)
      await checkOpened(folder, handle)
      return found
    })
    const entries: Entry[] = []
    for (const { name, kind } of names) {
      const path = folder.path === '' ? name : `${folder.path}/${name}`
      const target = kind === 'link' ? await find(path).catch(() => undefined) : undefined
      const shown = kind === 'link' ? target?.kind : kind
      if (shown) entries.push({ name, path, kind: shown, isLink: kind === 'link' })
    }
    return entries
  }

  const isShown = (path: string): boolean => {
    const segments = path.split('/')
    return !isHidden(segments) && !(base !== undefined && secret.covers(join(base, ...segments)))
  }

  return { check: async () => void (await home()), find, read, list, isShown }
}

const hidden = (path: string): Refused =>
  new Refused(
    `${quoted(path)} is refused: files and folders that begin with a dot are hidden; ` +
      'to show them, set "showHidden": true in the entry of this server',
  )

/** Opens what was found; the caller checks the handle, because the path may lead elsewhere by now. */
const withHandle = async <T>(found: Found, use: (handle: FileHandle) => Promise<T>): Promise<T> => {
  // A pipe put there since must not make us wait, a link put there since must not be followed.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
  const handle = await open(found.real, flags).catch(error => refuse(found.path, error))
  try {
    return await use(handle)
  } finally {
    await handle.close()
  }
}

/** On Linux a link to what is open, whatever its path leads to by now. */
const linkTo = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`

/** Other systems have no such links. Any other error must not lead back to the path, which may have changed. */
const hasNoLinks = ({ code }: NodeJS.ErrnoException): boolean => code === 'ENOENT'

interface Named {
  readonly name: string
  readonly kind: Entry['kind'] | 'link'
}

/** The names in an opened folder, sorted; at most `most` that are wanted. */
const readNames = async (
  folder: Found,
  handle: FileHandle,
  most: number,
  isWanted: (name: string) => boolean,
): Promise<Named[]> => {
  const names: Named[] = []
  const options = { bufferSize: 256 }
  // On Linux this reads the opened folder itself. Elsewhere the path is opened a second time.
  const opened = await opendir(linkTo(handle), options)
    .catch(error => (hasNoLinks(error) ? opendir(folder.real, options) : Promise.reject(error)))
    .catch(error => refuse(folder.path, error))
  for await (const item of opened) {
    const kind = item.isFile() ? 'file' : item.isDirectory() ? 'folder' : item.isSymbolicLink() ? 'link' : undefined
    if (kind && isWanted(item.name)) names.push({ name: item.name, kind })
    if (names.length >= most) break
  }
  return names.sort((a, b) => (a.name < b.name ? -1 : 1))
}

const kindOf = (path: string, stats: Stats): Found['kind'] => {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'folder'
  throw new Refused(`${quoted(path)} is refused: it is a device, a pipe or a socket`)
}

/** Reads to the end, wherever that is by now: the size is a guess, and 0 for files that are made up while being read. */
const readAll = async (file: Found, handle: FileHandle, limit: number): Promise<Buffer> => {
  let bytes = Buffer.allocUnsafe(Math.min(limit, file.size) + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length)
    length += bytesRead
    if (bytesRead === 0) return bytes.subarray(0, length)
    if (length > limit)
      throw new Refused(`${quoted(file.path)} is larger than ${limit} bytes, which is more than is read at once`)
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

/** Says what is wrong without showing where the root lies. */
const refuse = (path: string, error: NodeJS.ErrnoException): never => {
  throw new Refused(`${quoted(path)} cannot be read: ${REASONS[error.code ?? ''] ?? error.code ?? 'unknown reason'}`)
}
