import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { AT_HOME, checkConfig, DEMO, type EmbeddedServers } from './check.ts'
import { type JsonText, JsonTextError, parseJsonText } from './json-text.ts'
import { ConfigError, formatProblems } from './problems.ts'
import { readFiles, secretFiles } from './secret-files.ts'
import type { ServerConfig, Snapshot } from './snapshot.ts'
import type { Environment } from './variables.ts'

/** Where a configuration comes from: flags win over the file, the file over the defaults. */
export interface ConfigSource {
  readonly file?: string | undefined
  readonly value?: unknown // instead of a file: what it would contain
  readonly embedded?: EmbeddedServers | undefined
  readonly env: Environment
  readonly flags?: { readonly host?: string | undefined; readonly port?: number | undefined }
  readonly demo?: boolean | undefined // what is served when nobody names a server: the demo
}

const NO_LINES = { lineOf: () => undefined, repeated: [] }

/** Reads and checks the configuration, or throws a ConfigError with everything that is wrong. */
export const loadConfig = async (source: ConfigSource): Promise<Snapshot> => {
  const { file, value = {}, embedded, env, flags, demo } = source
  const text: JsonText = file === undefined ? { value, ...NO_LINES } : parse(file, await read(file))
  const folder = file === undefined ? process.cwd() : dirname(file)
  const { snapshot, problems } = checkConfig(
    text,
    await readFiles(serversIn(text.value), env, folder),
    demo ? DEMO : AT_HOME,
    embedded,
  )
  if (problems.length > 0) throw new ConfigError(formatProblems(file ?? 'the configuration', problems, text.lineOf))
  const { host = snapshot.listen.host, port = snapshot.listen.port } = flags ?? {}
  const servers = file === undefined ? snapshot.servers : new Map([...snapshot.servers].map(withRoot(folder)))
  const sources = file === undefined ? [] : [resolve(file), ...secretFiles(serversIn(text.value), folder)]
  return { ...snapshot, servers, listen: { ...snapshot.listen, host, port }, sources }
}

/** References stand nowhere else. */
const serversIn = (file: unknown): unknown =>
  typeof file === 'object' && file !== null && 'mcpServers' in file ? file.mcpServers : undefined

/** A folder in a file is relative to that file. */
const withRoot =
  (folder: string) =>
  ([name, server]: readonly [string, ServerConfig]): [string, ServerConfig] => [
    name,
    'root' in server ? { ...server, root: resolve(folder, server.root) } : server,
  ]

const READ_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
}

const read = async (file: string): Promise<string> => {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    throw new ConfigError(`cannot read ${file}: ${READ_FAULTS[code] ?? message}`)
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
