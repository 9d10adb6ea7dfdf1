import { open, readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { checkConfig, DEFAULT_SERVERS, DEMO_SERVERS, type EmbeddedServers } from './check.ts'
import { type JsonText, JsonTextError, parseJsonText } from './json-text.ts'
import { ConfigError, formatProblems } from './problems.ts'
import type { ServerConfig, Snapshot } from './snapshot.ts'
import { type Environment, fileErrorKey, fileKey, filesIn } from './variables.ts'

/** The sources of a configuration: flags override the file, the file overrides the defaults. */
export interface ConfigSource {
  readonly file?: string | undefined
  readonly value?: unknown // instead of a file: what it would contain
  readonly embedded?: EmbeddedServers | undefined
  readonly env: Environment
  readonly flags?: { readonly host?: string | undefined; readonly port?: number | undefined }
  readonly demo?: boolean | undefined // serve the demo if the file names no server
}

const MAX_SECRET_BYTES = 64 * 1024

const NO_LINES = { lineOf: () => undefined, repeated: [] }

/** Reads and checks the configuration. Throws a ConfigError with all its problems. */
export const loadConfig = async (source: ConfigSource): Promise<Snapshot> => {
  const { file, value = {}, embedded, env, flags, demo } = source
  const text: JsonText = file === undefined ? { value, ...NO_LINES } : parse(file, await read(file))
  const folder = file === undefined ? process.cwd() : dirname(file)
  const { snapshot, problems } = checkConfig(
    text,
    await withSecretFiles(serversIn(text.value), env, folder),
    demo ? DEMO_SERVERS : DEFAULT_SERVERS,
    embedded,
  )
  if (problems.length > 0) throw new ConfigError(formatProblems(file ?? 'the configuration', problems, text.lineOf))
  const { host = snapshot.listen.host, port = snapshot.listen.port } = flags ?? {}
  const servers = file === undefined ? snapshot.servers : new Map([...snapshot.servers].map(withRoot(folder)))
  const sources = file === undefined ? [] : [resolve(file), ...secretFilesOf(serversIn(text.value), folder)]
  return { ...snapshot, servers, listen: { ...snapshot.listen, host, port }, sources }
}

/** The part of the file that may contain references. */
const serversIn = (file: unknown): unknown =>
  typeof file === 'object' && file !== null && 'mcpServers' in file ? file.mcpServers : undefined

/** A relative `root` counts from the folder of the file. */
const withRoot =
  (folder: string) =>
  ([name, server]: readonly [string, ServerConfig]): [string, ServerConfig] => [
    name,
    'root' in server ? { ...server, root: resolve(folder, server.root) } : server,
  ]

const READ_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
}

const read = async (file: string): Promise<string> => {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    throw new ConfigError(`cannot read ${file}: ${READ_ERRORS[code] ?? message}`)
  }
}

const parse = (file: string, source: string): JsonText => {
  try {
    return parseJsonText(source)
  } catch (cause) {
    if (!(cause instanceof JsonTextError)) throw cause
    throw new ConfigError(`${file} is not JSON: line ${cause.line}, column ${cause.column}: ${cause.message}`)
  }
}

/** The environment with the text of every file that a configuration refers to as `${file:PATH}`. */
const withSecretFiles = async (value: unknown, env: Environment, folder: string): Promise<Environment> => {
  const paths = pathsIn(value)
  if (paths.size === 0) return env
  const read = await Promise.all([...paths].map(path => readSecret(path, resolve(folder, path))))
  return { ...env, ...Object.fromEntries(read) }
}

/** The absolute paths of the files that a configuration refers to. */
const secretFilesOf = (value: unknown, folder: string): string[] =>
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

const readSecret = async (path: string, file: string): Promise<[string, string]> => {
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
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(MAX_SECRET_BYTES + 1))
    if (bytesRead > MAX_SECRET_BYTES) throw new Error(`it is larger than ${MAX_SECRET_BYTES / 1024} KiB`)
    return buffer
      .subarray(0, bytesRead)
      .toString('utf8')
      .replace(/\r?\n$/, '')
  } finally {
    await handle.close()
  }
}
