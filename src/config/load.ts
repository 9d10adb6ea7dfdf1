import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { locateAudit } from './audit.ts'
import { checkConfig, DEFAULT_SERVERS, DEMO_SERVERS, type EmbeddedServers } from './check.ts'
import { locateCertificates } from './cluster.ts'
import { backupOf } from './edit/safe-write.ts'
import { type JsonText, JsonTextError, parseJsonText } from './json-text.ts'
import { namedFiles, READ_ERRORS, readNamedFiles } from './named-files.ts'
import { locateDocument } from './openapi.ts'
import { ConfigError, formatProblems, placeProblems } from './problems.ts'
import { entriesOf, isRawObject } from './server-entries.ts'
import type { ServerConfig, Snapshot } from './snapshot.ts'
import { type Environment, homeOf, withEditorVariables, workspaceFolderOf } from './variables.ts'

/** The sources of a configuration: flags override the file, the file overrides the defaults. */
export interface ConfigSource {
  readonly file?: string | undefined
  readonly text?: string | undefined // instead of that of the file, which may not exist yet
  readonly value?: unknown // instead of a file: what it would contain
  readonly embedded?: EmbeddedServers | undefined
  readonly env: Environment
  readonly flags?: { readonly host?: string | undefined; readonly port?: number | undefined }
  readonly demo?: boolean | undefined // serve the demo if the file names no server
}

const NO_PLACES = { placeOf: () => undefined, repeated: [] }

/** Reads and checks the configuration. Throws a ConfigError with all its problems. */
export const loadConfig = async (source: ConfigSource): Promise<Snapshot> => {
  const { file, value = {}, embedded, env: given, flags, demo } = source
  const text: JsonText = file === undefined ? { value, ...NO_PLACES } : parse(file, source.text ?? (await read(file)))
  const folder = file === undefined ? process.cwd() : dirname(resolve(file))
  const workspaceFolder = file === undefined ? folder : workspaceFolderOf(file)
  const env = withEditorVariables(given, workspaceFolder, homeOf(given))
  const entries = entriesOf(text.value)
  const sections = SECTIONS.map(name => ({ name, raw: sectionOf(text.value, name), path: [name] }))
  const named = namedFiles([...entries, ...sections], { env, folder, workspaceFolder })
  const { snapshot, problems } = checkConfig(text, {
    env: { ...env, ...(await readNamedFiles(named)) },
    fallback: demo ? DEMO_SERVERS : DEFAULT_SERVERS,
    embedded,
    isFile: file !== undefined,
    host: flags?.host,
    port: flags?.port,
  })
  if (problems.length > 0) {
    const placed = placeProblems(problems, text.placeOf)
    throw new ConfigError(formatProblems(file ?? 'the configuration', placed), placed)
  }
  const { host = snapshot.listen.host, port = snapshot.listen.port } = flags ?? {}
  const listen = { ...snapshot.listen, host, port }
  if (file === undefined) return { ...snapshot, listen, sources: [] }
  const servers = new Map([...snapshot.servers].map(withRoot(folder)))
  return {
    ...snapshot,
    servers,
    listen,
    cluster: locateCertificates(snapshot.cluster, folder),
    audit: locateAudit(snapshot.audit, folder),
    file: resolve(file),
    sources: [resolve(file), backupOf(resolve(file)), ...named.values()],
  }
}

/** Sections besides servers that may refer to files, for example for a password. */
const SECTIONS = ['listen', 'auth', 'store', 'cluster', 'audit', 'telemetry']

const sectionOf = (root: unknown, name: string): unknown => (isRawObject(root) ? root[name] : undefined)

/** A relative `root` or `assertionFile` counts from the folder of the file. */
const withRoot =
  (folder: string) =>
  ([name, server]: readonly [string, ServerConfig]): [string, ServerConfig] => [name, withFolder(server, folder)]

const withFolder = (server: ServerConfig, folder: string): ServerConfig => {
  if ('root' in server) return { ...server, root: resolve(folder, server.root) }
  if (server.kind === 'openapi') return { ...server, ...locateDocument(server, folder) }
  if (server.kind !== 'remote' || !server.oauth || server.oauth.grant !== 'jwt_bearer') return server
  const { assertionFile: file, ...oauth } = server.oauth
  return file === undefined ? server : { ...server, oauth: { ...oauth, assertionFile: resolve(folder, file) } }
}

const read = async (file: string): Promise<string> => {
  try {
    return decode(file, await readFile(file))
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause
    const { code = '', message } = cause as NodeJS.ErrnoException
    throw new ConfigError(`cannot read ${file}: ${READ_ERRORS[code] ?? message}`)
  }
}

/** PowerShell and Notepad write UTF-16, with a byte order mark. */
const decode = (file: string, bytes: Buffer): string => {
  const isUtf16 = ['fffe', 'feff'].includes(bytes.subarray(0, 2).toString('hex')) || bytes.subarray(0, 4).includes(0)
  if (isUtf16) throw new ConfigError(`${file} is UTF-16 text; save it as UTF-8`)
  return bytes.toString('utf8')
}

const parse = (file: string, source: string): JsonText => {
  try {
    return parseJsonText(source)
  } catch (cause) {
    if (!(cause instanceof JsonTextError)) throw cause
    const { message, line, column } = cause
    throw new ConfigError(`${file} is not JSON: line ${line}, column ${column}: ${message}`, [
      { path: [], message, line, column },
    ])
  }
}
