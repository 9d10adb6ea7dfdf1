import { access, constants, mkdir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, posix, resolve, win32 } from 'node:path'
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
  ENOENT: 'nothing can be made there',
  ENOTDIR: 'part of it is not a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
}

/** Makes sure the data directory is there and can be written; a new one is its owner's alone. */
export const ensureDataDirectory = async (directory: string): Promise<void> => {
  try {
    await makeDirectory(directory)
    await access(directory, constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw fault(directory, cause)
  }
}

/** Makes sure the data directory can be read, or is not there yet. */
export const ensureReadable = async (directory: string): Promise<void> => {
  try {
    await access(directory, constants.R_OK | constants.X_OK)
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw fault(directory, cause)
  }
}

/** Step by step: `recursive` never returns where the system makes no directories, as in /proc. */
const makeDirectory = async (directory: string): Promise<void> => {
  try {
    await mkdir(directory, { mode: OWNER_ONLY })
  } catch (cause) {
    const found = await stat(codeOf(cause) === 'ENOENT' ? dirname(directory) : directory).catch(() => undefined)
    if (codeOf(cause) === 'EEXIST' && found?.isDirectory()) return
    if (codeOf(cause) !== 'ENOENT' || found) throw cause
    await makeDirectory(dirname(directory))
    await makeDirectory(directory)
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? ''

const fault = (directory: string, cause: unknown): ConfigError =>
  new ConfigError(
    `cannot use the data directory ${directory}: ${FAULTS[codeOf(cause)] ?? (cause as Error).message}; ` +
      'choose another with --data DIR or DRAGOMAN_DATA',
  )
