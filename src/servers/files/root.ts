import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, opendir, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { quoted, Refused, segmentsOf } from './paths.ts'

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
}

/** Opens a root; the folder may appear later. */
export const createRoot = (folder: string): Root => {
  let base: string | undefined

  const home = async (): Promise<string> => {
    if (base !== undefined) return base
    const real = await realpath(folder).catch(() => undefined)
    if (real === undefined || !(await lstat(real)).isDirectory())
      throw new Refused(
        'The root of this files server is not a folder that can be read; check "root" in the configuration',
      )
    base = real
    return real
  }

  const find = async (path: string): Promise<Found> => {
    const segments = segmentsOf(path)
    const top = await home()
    const real = await realpath(join(top, ...segments)).catch(error => refuse(path, error))
    // Compared by case, on what the system itself says the name is: a sibling that differs by case is outside.
    if (real !== top && !real.startsWith(top.endsWith(sep) ? top : top + sep))
      throw new Refused(`${quoted(path)} is refused: it is a link that leads outside the project`)
    const stats = await lstat(real).catch(error => refuse(path, error))
    return { path: segments.join('/'), real, kind: kindOf(path, stats), size: stats.size, modified: stats.mtime }
  }

  const read = async (file: Found, limit: number): Promise<Buffer> => {
    if (file.kind === 'folder') throw new Refused(`${quoted(file.path)} is a folder; list it with list_dir`)
    // A pipe put there since must not make us wait, a link put there since must not be followed.
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
    const handle = await open(file.real, flags).catch(error => refuse(file.path, error))
    try {
      await checkAgain(file, handle)
      return await readAll(file, handle, limit)
    } finally {
      await handle.close()
    }
  }

  /** What was opened must be what lies at that path now, and the path must still be free of links. */
  const checkAgain = async (file: Found, handle: FileHandle): Promise<void> => {
    const [opened, now] = [await handle.stat(), await find(file.path)]
    kindOf(file.path, opened)
    const there = await lstat(now.real).catch(error => refuse(file.path, error))
    if (now.real !== file.real || there.ino !== opened.ino || there.dev !== opened.dev)
      throw new Refused(`${quoted(file.path)} changed while it was being opened; try again`)
  }

  const list = async (folder: Found, most: number): Promise<Entry[]> => {
    if (folder.kind === 'file') throw new Refused(`${quoted(folder.path)} is a file; read it with read_file`)
    const names: { name: string; kind: Entry['kind'] | 'link' }[] = []
    const opened = await opendir(folder.real, { bufferSize: 256 }).catch(error => refuse(folder.path, error))
    for await (const item of opened) {
      const kind = item.isFile() ? 'file' : item.isDirectory() ? 'folder' : item.isSymbolicLink() ? 'link' : undefined
      if (kind) names.push({ name: item.name, kind })
      if (names.length >= most) break
    }
    names.sort((a, b) => (a.name < b.name ? -1 : 1))
    const entries: Entry[] = []
    for (const { name, kind } of names) {
      const path = folder.path === '' ? name : `${folder.path}/${name}`
      const target = kind === 'link' ? await find(path).catch(() => undefined) : undefined
      const shown = kind === 'link' ? target?.kind : kind
      if (shown) entries.push({ name, path, kind: shown, isLink: kind === 'link' })
    }
    return entries
  }

  return { check: async () => void (await home()), find, read, list }
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
