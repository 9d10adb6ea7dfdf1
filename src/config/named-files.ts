import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isRawObject, type RawEntry } from './server-entries.ts'
import { type Environment, fileErrorKey, fileKey, filesIn, fillInPath } from './variables.ts'

interface FolderOptions {
  readonly env: Environment
  readonly folder: string // of the configuration file
  readonly workspaceFolder: string
}

const MAX_BYTES = 64 * 1024

/** Why the system does not let a file be read, by error code. */
export const READ_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
}

/** The files that entries refer to, as `${file:PATH}` or `envFile`: the path as written, and the absolute path. */
export const namedFiles = (entries: readonly RawEntry[], options: FolderOptions): Map<string, string> => {
  const { env, folder, workspaceFolder } = options
  const files = new Map<string, string>()
  const collect = (value: unknown): void => {
    if (typeof value === 'string') for (const path of filesIn(value)) files.set(path, locate(path, env, folder))
    else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) collect(member)
  }
  for (const { raw } of entries) {
    collect(raw)
    const envFile = isRawObject(raw) ? raw.envFile : undefined
    if (typeof envFile === 'string') files.set(envFile, locate(envFile, env, workspaceFolder))
  }
  return files
}

const locate = (path: string, env: Environment, folder: string): string => {
  const filled = fillInPath(path, env)
  return resolve(folder, filled.kind === 'text' ? filled.text : path)
}

/** The text of each file, or why it cannot be read, by the keys of `fileKey` and `fileErrorKey`. */
export const readNamedFiles = async (files: ReadonlyMap<string, string>): Promise<Environment> =>
  Object.fromEntries(await Promise.all([...files].map(([path, file]) => readNamed(path, file))))

const readNamed = async (path: string, file: string): Promise<[string, string]> => {
  try {
    return [fileKey(path), await readSmallFile(file)]
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    return [fileErrorKey(path), `: ${READ_ERRORS[code] ?? (code || message)}`]
  }
}

/** Bounded, because a larger file is a mistake and a device never ends. */
const readSmallFile = async (file: string): Promise<string> => {
  const handle = await open(file)
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(MAX_BYTES + 1))
    if (bytesRead > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES / 1024} KiB`)
    return buffer
      .subarray(0, bytesRead)
      .toString('utf8')
      .replace(/\r?\n$/, '')
  } finally {
    await handle.close()
  }
}
