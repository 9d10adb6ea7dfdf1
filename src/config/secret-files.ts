import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Environment, faultKey, fileKey, filesIn } from './variables.ts'

const MOST_BYTES = 64 * 1024

const FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
}

/** The environment with the text of every file that a configuration refers to as `${file:PATH}`. */
export const readFiles = async (value: unknown, env: Environment, folder: string): Promise<Environment> => {
  const paths = pathsIn(value)
  if (paths.size === 0) return env
  const read = await Promise.all([...paths].map(path => readOne(path, resolve(folder, path))))
  return { ...env, ...Object.fromEntries(read) }
}

/** The absolute paths of the files that a configuration refers to. */
export const secretFiles = (value: unknown, folder: string): string[] =>
  [...pathsIn(value)].map(path => resolve(folder, path))

const pathsIn = (value: unknown): Set<string> => {
  const paths = new Set<string>()
  collect(value, paths)
  return paths
}

const collect = (value: unknown, paths: Set<string>): void => {
  if (typeof value === 'string') for (const path of filesIn(value)) paths.add(path)
  else if (typeof value === 'object' && value !== null)
    for (const member of Object.values(value)) collect(member, paths)
}

const readOne = async (path: string, file: string): Promise<[string, string]> => {
  try {
    return [fileKey(path), await readText(file)]
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    return [faultKey(path), `: ${FAULTS[code] ?? (code || message)}`]
  }
}

/** A secret, not a log: whatever is larger is a mistake, and a device would never end. */
const readText = async (file: string): Promise<string> => {
  const handle = await open(file)
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(MOST_BYTES + 1))
    if (bytesRead > MOST_BYTES) throw new Error(`it is larger than ${MOST_BYTES / 1024} KiB`)
    return buffer
      .subarray(0, bytesRead)
      .toString('utf8')
      .replace(/\r?\n$/, '')
  } finally {
    await handle.close()
  }
}
