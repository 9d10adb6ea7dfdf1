import { type FSWatcher, watch } from 'node:fs'
import { NEVER } from '../../protocol/cancellation.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { Rejected } from './paths.ts'
import type { Root } from './root.ts'
import { createWalkBudget, walk } from './walk.ts'

const MAX_FOLDERS = 512
const MAX_HELD = 1000
const MAX_SEEN = 20_000
const WALK_MS = 5000
const SETTLE_MS = 100 // saving a file causes several events
const MAX_PENDING = 1000

interface WatchOptions {
  /** A file or folder was changed, created or removed. */
  readonly onChange: (path: string) => void
  /** Names were added or removed. */
  readonly onRename: () => void
}

/** Watches folders of the project. */
export interface Watcher {
  /** Watches a path until the returned function is called. */
  hold(path: string): () => void
  /** Resolves once every held path is watched. */
  settled(): Promise<void>
  close(): void
}

/** Opens one system watch per folder, at most MAX_FOLDERS, and none while no path is held. */
export const createWatcher = (root: Root, { onChange, onRename }: WatchOptions): Watcher => {
  const held = new Map<string, number>() // paths, and how often each is held
  const folders = new Map<string, FSWatcher>()
  const pending = new Map<string, boolean>() // paths, and whether the name was added or removed
  let timer: NodeJS.Timeout | undefined
  const updating = new SingleFlight()
  let isStale = false

  const onEvent = (folder: string, isRename: boolean, name: string | null): void => {
    if (name === null) return
    const path = folder === '' ? name : `${folder}/${name}`
    if (!root.isShown(path)) return
    if (pending.size >= MAX_PENDING && !pending.has(path)) return
    pending.set(path, isRename || pending.get(path) === true)
    timer ??= setTimeout(flush, SETTLE_MS).unref()
  }

  const flush = (): void => {
    timer = undefined
    const events = [...pending]
    pending.clear()
    for (const [path] of events) onChange(path)
    const renamed = events.flatMap(([path, isRename]) => (isRename ? [path] : []))
    if (renamed.length === 0) return
    onRename()
    void hasFolder(renamed).then(isFolder => isFolder && update())
  }

  /** A new folder must be watched and a removed one no longer; renamed files change no watch. */
  const hasFolder = async (paths: readonly string[]): Promise<boolean> => {
    for (const path of paths) {
      const found = folders.has(path) || (await root.find(path).catch(() => undefined))
      if (found === true || (found && found.kind === 'folder')) return true
    }
    return false
  }

  const open = (path: string, real: string): void => {
    if (folders.has(path) || folders.size >= MAX_FOLDERS) return
    try {
      const watcher = watch(real, { persistent: false }, (event, name) => onEvent(path, event === 'rename', name))
      watcher.on('error', () => {
        watcher.close()
        if (folders.get(path) === watcher) folders.delete(path)
      })
      folders.set(path, watcher)
    } catch {
      // The system has no watch left, or the folder was removed: its changes are not announced.
    }
  }

  const closeFolder = (path: string): void => {
    folders.get(path)?.close()
    folders.delete(path)
  }

  /** Opens and closes watches so that they fit what is held; requests during an update share the next one. */
  const update = (): void => {
    isStale = true
    void updating.run(updateUntilFresh)
  }

  const updateUntilFresh = async (): Promise<void> => {
    while (isStale) {
      isStale = false
      const needed = new Map<string, string>()
      for (const path of held.keys()) for (const [folder, real] of await foldersOf(root, path)) needed.set(folder, real)
      if (held.size === 0) needed.clear() // closed in the meantime
      for (const path of [...folders.keys()]) if (!needed.has(path)) closeFolder(path)
      for (const [path, real] of needed) open(path, real)
    }
  }

  return {
    hold: path => {
      if (held.size >= MAX_HELD && !held.has(path)) return () => {}
      if (addOne(held, path) === 1) update()
      let isHeld = true
      return () => {
        if (isHeld && removeOne(held, path)) update()
        isHeld = false
      }
    },
    settled: () => updating.running ?? Promise.resolve(),
    close: () => {
      held.clear()
      clearTimeout(timer)
      for (const path of [...folders.keys()]) closeFolder(path)
    },
  }
}

/** The folders to watch for a path: a folder and all below it; for a file its folder, because files may be replaced. */
const foldersOf = async (root: Root, path: string): Promise<[path: string, real: string][]> => {
  try {
    const found = await root.find(path)
    const from =
      found.kind === 'folder' ? found : await root.find(found.path.slice(0, Math.max(0, found.path.lastIndexOf('/'))))
    const folders: [string, string][] = [[from.path, from.real]]
    if (found.kind === 'file') return folders
    const budget = createWalkBudget(MAX_SEEN, WALK_MS)
    const options = { recursive: true, includeIgnored: false, budget, signal: NEVER }
    for await (const entry of walk(root, from, options)) {
      if (folders.length >= MAX_FOLDERS) break
      if (entry.kind !== 'folder' || entry.isLink) continue
      const below = await root.find(entry.path).catch(unlessRejected)
      if (below) folders.push([below.path, below.real])
    }
    return folders
  } catch (error) {
    unlessRejected(error)
    return [] // missing or hidden: nothing to watch
  }
}

/** A folder that is removed during the walk is left out. */
const unlessRejected = (error: unknown): undefined => {
  if (!(error instanceof Rejected)) throw error
}

/** Counts a key once more; returns its count. */
export const addOne = (counts: Map<string, number>, key: string): number => {
  const count = (counts.get(key) ?? 0) + 1
  counts.set(key, count)
  return count
}

/** Counts a key once less; true if that was the last one. */
export const removeOne = (counts: Map<string, number>, key: string): boolean => {
  const count = (counts.get(key) ?? 1) - 1
  if (count === 0) return counts.delete(key)
  counts.set(key, count)
  return false
}
