import { access, constants, mkdir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, posix, resolve, win32 } from 'node:path'
import { ConfigError } from './problems.ts'
import type { Environment } from './variables.ts'

/** What the path of the data directory depends on. */
export interface DataDirSource {
  readonly flag?: string | undefined // --data
  readonly env: Environment
  readonly platform?: NodeJS.Platform
  readonly home?: string
}

const NAME = 'dragoman'
const OWNER_ONLY = 0o700

/** The directory of all state: `--data`, `DRAGOMAN_DATA`, or the platform's default. It may not exist yet. */
export const dataDirectory = ({ flag, env, platform = process.platform, home = homedir() }: DataDirSource): string => {
  const given = flag || env.DRAGOMAN_DATA
  if (given) return resolve(given)
  return (DEFAULTS[platform] ?? xdg)(env, home)
}

type DefaultDirectory = (env: Environment, home: string) => string

const xdg: DefaultDirectory = ({ XDG_DATA_HOME: base = '' }, home) =>
  // The XDG base directory specification: relative paths are ignored.
  posix.isAbsolute(base) ? posix.join(base, NAME) : posix.join(home, '.local', 'share', NAME)

const DEFAULTS: { readonly [platform in NodeJS.Platform]?: DefaultDirectory } = {
  darwin: (_env, home) => posix.join(home, 'Library', 'Application Support', NAME),
  win32: ({ LOCALAPPDATA: base }, home) => win32.join(base || win32.join(home, 'AppData', 'Local'), NAME),
}

const FAULTS: Readonly<Record<string, string>> = {
  EEXIST: 'it is not a directory',
  ENOENT: 'nothing can be created there',
  ENOTDIR: 'part of it is not a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
}

/** Creates the data directory, for its owner only, and checks that it can be written. */
export const ensureDataDirectory = async (directory: string): Promise<void> => {
  try {
    await makeDirectory(directory)
    await access(directory, constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw fault(directory, cause)
  }
}

/** Checks that the data directory can be read, or does not exist yet. */
export const ensureReadable = async (directory: string): Promise<void> => {
  try {
    await access(directory, constants.R_OK | constants.X_OK)
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw fault(directory, cause)
  }
}

/**
 * One level at a time: with `recursive`, mkdir never returns in file systems like /proc. Another process may make the same
 * directories meanwhile: one whose parent has appeared since is tried once more.
 */
const makeDirectory = async (directory: string, isRepeated = false): Promise<void> => {
  try {
    await mkdir(directory, { mode: OWNER_ONLY })
  } catch (cause) {
    const found = await stat(codeOf(cause) === 'ENOENT' ? dirname(directory) : directory).catch(() => undefined)
    if (codeOf(cause) === 'EEXIST' && found?.isDirectory()) return
    if (codeOf(cause) !== 'ENOENT' || (found && isRepeated)) throw cause
    if (!found) await makeDirectory(dirname(directory))
    await makeDirectory(directory, true)
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? ''

const fault = (directory: string, cause: unknown): ConfigError =>
  new ConfigError(
    `cannot use the data directory ${directory}: ${FAULTS[codeOf(cause)] ?? (cause as Error).message}; ` +
      'choose another with --data DIR or DRAGOMAN_DATA',
  )
