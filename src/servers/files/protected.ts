import type { Stats } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { sep } from 'node:path'
import { SingleFlight } from '../../std/single-flight.ts'

/** The paths this server never reads, whatever its root is. */
export interface ProtectedPaths {
  /** Resolves the protected paths; call it before `covers`. */
  refresh(): Promise<void>
  /** True for a protected file or folder and for everything below one. With `stats`, hard links are found too. */
  covers(real: string, stats?: Stats): boolean
}

interface Identity {
  readonly dev: number
  readonly ino: number
}

const FRESH_MS = 1000 // only the operator moves these paths, and a search checks thousands of files
// /proc shows the environment and the open files of the gateway.
const ALWAYS = process.platform === 'win32' ? [] : ['/proc']

/** `list` names absolute paths, which need not exist yet. */
export const createProtectedPaths = (list: () => readonly string[]): ProtectedPaths => {
  let paths: readonly string[] = ALWAYS
  let identities: readonly Identity[] = []
  let freshUntil = Number.NEGATIVE_INFINITY
  const refreshing = new SingleFlight()

  const resolveAll = async (): Promise<void> => {
    const found = await Promise.all(list().map(locate))
    paths = [...ALWAYS, ...found.flatMap(({ names }) => names)]
    identities = found.flatMap(({ identity }) => identity ?? [])
    freshUntil = performance.now() + FRESH_MS
  }

  return {
    refresh: async () => {
      if (performance.now() >= freshUntil) await refreshing.run(resolveAll)
    },
    covers: (real, stats) =>
      paths.some(path => isWithin(path, real)) ||
      (stats !== undefined && identities.some(({ dev, ino }) => stats.dev === dev && stats.ino === ino)),
  }
}

/** True if a real path is the folder or inside it. Case-sensitive: both are spelled as the file system has them. */
export const isWithin = (folder: string, real: string): boolean =>
  real === folder || real.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** The path as given and resolved; of one that does not exist yet only the name is known. */
const locate = async (path: string): Promise<{ names: string[]; identity?: Identity }> => {
  try {
    const real = await realpath(path)
    const { dev, ino } = await stat(real)
    return { names: [path, real], identity: { dev, ino } }
  } catch {
    return { names: [path] }
  }
}
