import { type FSWatcher, watch } from 'node:fs'
import { NEVER } from '../../protocol/cancellation.ts'
import { Refused } from './paths.ts'
import type { Root } from './root.ts'
import { createBudget, walk } from './walk.ts'

const MOST_FOLDERS = 512
const MOST_WANTED = 1000
const MOST_SEEN = 20_000
const LONGEST_MS = 5000
const SETTLE_MS = 100 // saving a file is several events
const MOST_PENDING = 1000

interface Options {
  /** A file or folder changed, appeared or went away. */
  readonly changed: (path: string) => void
  /** Somewhere names came or went. */
  readonly renamed: () => void
}

/** Watches folders of the project while somebody wants to know. */
export interface Watcher {
  /** Watches what a path leads to; the returned function ends it. */
  hold(path: string): () => void
  /** Resolves once everything that is held is being watched. */
  settled(): Promise<void>
  close(): void
}

/** One system watch per folder, however many want it; never more than 512, and none when nobody wants any. */
export const createWatcher = (root: Root, { changed, renamed }: Options): Watcher => {
  const wanted = new Map<string, number>() // paths, and how many want them
  const folders = new Map<string, FSWatcher>()
  const pending = new Map<string, boolean>() // paths, and whether the name came or went
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let isStale = false

  const note = (folder: string, isRename: boolean, name: string | null): void => {
    if (name === null) return
    const path = folder === '' ? name : `${folder}/${name}`
    if (!root.isShown(path)) return
    if (pending.size >= MOST_PENDING && !pending.has(path)) return
    pending.set(path, isRename || pending.get(path) === true)
    timer ??= setTimeout(flush, SETTLE_MS).unref()
  }

  const flush = (): void => {
    timer = undefined
    const events = [...pending]
    pending.clear()
    for (const [path] of events) changed(path)
    const names = events.flatMap(([path, isRename]) => (isRename ? [path] : []))
    if (names.length === 0) return
    renamed()
    void anyFolder(names).then(isAny => isAny && look())
  }

  /** A folder that came has to be watched, one that went must not be any more; files are of no concern. */
  const anyFolder = async (paths: readonly string[]): Promise<boolean> => {
    for (const path of paths) {
      const found = folders.has(path) || (await root.find(path).catch(() => undefined))
      if (found === true || (found && found.kind === 'folder')) return true
    }
    return false
  }

  const open = (path: string, real: string): void => {
    if (folders.has(path) || folders.size >= MOST_FOLDERS) return
    try {
      const watcher = watch(real, { persistent: false }, (event, name) => note(path, event === 'rename', name))
      watcher.on('error', () => {
        watcher.close()
        if (folders.get(path) === watcher) folders.delete(path)
      })
      folders.set(path, watcher)
    } catch {
      // The system has no watch left to give, or the folder went away: there will be no notices from it.
    }
  }

  const shut = (path: string): void => {
    folders.get(path)?.close()
    folders.delete(path)
  }

  const look = (): void => {
    isStale = true
    looking ??= lookAgain().finally(() => {
      looking = undefined
    })
  }

  const lookAgain = async (): Promise<void> => {
    while (isStale) {
      isStale = false
      const needed = new Map<string, string>()
      for (const path of wanted.keys())
        for (const [folder, real] of await foldersOf(root, path)) needed.set(folder, real)
      if (wanted.size === 0) needed.clear() // closed meanwhile
      for (const path of [...folders.keys()]) if (!needed.has(path)) shut(path)
      for (const [path, real] of needed) open(path, real)
    }
  }

  const release = (path: string): void => {
    const left = (wanted.get(path) ?? 1) - 1
    if (left > 0) wanted.set(path, left)
    else if (wanted.delete(path)) look()
  }

  return {
    hold: path => {
      if (wanted.size >= MOST_WANTED && !wanted.has(path)) return () => {}
      wanted.set(path, (wanted.get(path) ?? 0) + 1)
      if (wanted.get(path) === 1) look()
      let isHeld = true
      return () => {
        if (isHeld) release(path)
        isHeld = false
      }
    },
    settled: () => looking ?? Promise.resolve(),
    close: () => {
      wanted.clear()
      clearTimeout(timer)
      for (const path of [...folders.keys()]) shut(path)
    },
  }
}

/** The folders to watch for a path: all below a folder, the one around a file, which may be replaced as a whole. */
const foldersOf = async (root: Root, path: string): Promise<[path: string, real: string][]> => {
  try {
    const found = await root.find(path)
    const from =
      found.kind === 'folder' ? found : await root.find(found.path.slice(0, Math.max(0, found.path.lastIndexOf('/'))))
    const folders: [string, string][] = [[from.path, from.real]]
    if (found.kind === 'file') return folders
    const budget = createBudget(MOST_SEEN, LONGEST_MS)
    const options = { recursive: true, includeIgnored: false, budget, signal: NEVER }
    for await (const entry of walk(root, from, options)) {
      if (folders.length >= MOST_FOLDERS) break
      if (entry.kind !== 'folder' || entry.isLink) continue
      const below = await root.find(entry.path).catch(unlessRefused)
      if (below) folders.push([below.path, below.real])
    }
    return folders
  } catch (error) {
    unlessRefused(error)
    return [] // not there, or not ours: nothing to watch
  }
}

/** A folder that goes away while one looks costs only itself. */
const unlessRefused = (error: unknown): undefined => {
  if (!(error instanceof Refused)) throw error
}
