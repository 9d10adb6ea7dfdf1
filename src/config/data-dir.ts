import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { posix, resolve, win32 } from 'node:path'
import { ConfigError } from './problems.ts'
import type { Environment } from './variables.ts'

/** What the place of the data directory depends on. */
export interface DataDirSource {
  readonly flag?: string | undefined // --data
  readonly env: Environment
  readonly platform?: NodeJS.Platform
  readonly home?: string
}

const NAME = 'dragoman'
const OWNER_ONLY = 0o700

/** The directory all state rests in: `--data`, `DRAGOMAN_DATA`, or the platform's own place. It need not exist yet. */
export const dataDirectory = ({ flag, env, platform = process.platform, home = homedir() }: DataDirSource): string => {
  const given = flag || env.DRAGOMAN_DATA
  if (given) return resolve(given)
  return (PLACES[platform] ?? xdg)(env, home)
}

type Place = (env: Environment, home: string) => string

const xdg: Place = ({ XDG_DATA_HOME: base = '' }, home) =>
  // The XDG specification wants relative paths to be ignored.
  posix.isAbsolute(base) ? posix.join(base, NAME) : posix.join(home, '.local', 'share', NAME)

const PLACES: { readonly [platform in NodeJS.Platform]?: Place } = {
  darwin: (_env, home) => posix.join(home, 'Library', 'Application Support', NAME),
  win32: ({ LOCALAPPDATA: base }, home) => win32.join(base || win32.join(home, 'AppData', 'Local'), NAME),
}

const FAULTS: Readonly<Record<string, string>> = {
  EEXIST: 'it is not a directory',
  ENOTDIR: 'part of it is not a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
}

/** Makes sure the data directory is there; a new one is its owner's alone. */
export const ensureDataDirectory = async (directory: string): Promise<void> => {
  try {
    await mkdir(directory, { recursive: true, mode: OWNER_ONLY })
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    const why = FAULTS[code] ?? message
    throw new ConfigError(
      `cannot use the data directory ${directory}: ${why}; choose another with --data DIR or DRAGOMAN_DATA`,
    )
  }
}
