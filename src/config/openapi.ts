import { isAbsolute, resolve } from 'node:path'
import * as z from 'zod'
import { LONGEST_TIMER_MS } from '../std/time.ts'
import type { CallerValues } from './caller-values.ts'
import type { ConfigPath } from './json-text.ts'
import { type ConfigReport, formatPath } from './problems.ts'
import { readRemote } from './remote.ts'
import type { ServerEntry } from './schema.ts'
import { object, textList, textMap, textSchema, wholeNumber } from './schema-parts.ts'
import type { ServerOAuth, UnavailableServer } from './snapshot.ts'
import { type Environment, fillIn, fillInPath } from './variables.ts'

/** A REST API that an OpenAPI document describes. */
export interface OpenapiServer {
  readonly kind: 'openapi'
  readonly document: string // a URL, or the path of a file
  readonly url?: string | undefined // `baseUrl`, else the URL of the document: credentials are for its origin only
  readonly api: ApiSettings
  readonly headers: Readonly<Record<string, string>>
  readonly personal?: CallerValues | undefined // headers that depend on the caller
  readonly oauth?: ServerOAuth | false | undefined // undefined: if the API asks for it; false: never
  readonly timeoutMs: number // silence after which a call fails
  readonly allowCrossOriginRedirect?: boolean | undefined
}

/** `api` of an entry with `openapi`. */
export interface ApiSettings {
  readonly baseUrl?: string | undefined // undefined: as the document says
  readonly server?: string | number | undefined // undefined: the first one
  readonly variables: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>> // sent with every request
  readonly include: readonly string[] // empty: all operations
  readonly exclude: readonly string[]
  readonly refreshMs: number // 0: never
}

const HOUR_MS = 60 * 60_000

/** `api` of an entry with `openapi`. */
export const apiSchema = object({
  baseUrl: textSchema.optional().describe('Address of the API, if not the first one that the document names.'),
  server: z
    .union([wholeNumber(0), textSchema], { error: 'expected a whole number, or a part of a URL or description' })
    .optional()
    .describe('Which of the servers in the document is called: its place from 0, or a part of its URL or description.'),
  variables: textMap.default({}).describe('Values for the variables in the URL of the server.'),
  query: textMap
    .default({})
    .describe('Query parameters of every request, such as a key; write ${NAME} or ${file:PATH}.'),
  include: textList
    .default([])
    .describe(
      'Only these operations become tools: "tag:NAME", "id:OPERATION", a path, or a method and a path like "GET /pets/*".',
    ),
  exclude: textList.default([]).describe('These operations become no tools; written like those of "include".'),
  refreshMs: wholeNumber(0, LONGEST_TIMER_MS)
    .default(HOUR_MS)
    .describe('Milliseconds until a document at a URL is fetched again, if it has changed; 0: never.'),
}).describe('How the operations of "openapi" become tools, and where they are called.')

const isUrl = (text: string): boolean => /^https?:/i.test(text)

/** Reads an entry with `openapi`. An error in the file is a problem; a missing variable makes the server unavailable. */
export const readOpenapi = (
  entry: ServerEntry,
  path: ConfigPath,
  env: Environment,
  report: ConfigReport,
): OpenapiServer | UnavailableServer => {
  const missing: string[] = []
  const fill = (where: string, text: string): string => {
    const filled = isUrl(text) || where !== 'openapi' ? fillIn(text, env) : fillInPath(text, env)
    if (filled.kind === 'text') return filled.text.trim()
    missing.push(`${where}: ${filled.reason}`)
    return ''
  }
  const fillAll = (where: string, texts: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(`${where}.${name}`, text)]))

  const document = fill('openapi', entry.openapi ?? '')
  if (document === '' && missing.length === 0)
    report.problems.push({ path: [...path, 'openapi'], message: 'expected the path or the URL of an OpenAPI document' })
  const given = entry.api ?? apiSchema.parse({})
  const { baseUrl: written, ...rest } = given
  const address =
    written !== undefined
      ? { at: [...path, 'api', 'baseUrl'], text: written }
      : isUrl(document)
        ? { at: [...path, 'openapi'], text: document }
        : undefined
  // The rules for headers, credentials and logins are those of a remote server at that address.
  const remote = readRemote({ ...entry, type: undefined, era: 'auto' }, path, env, report, address ?? NO_ADDRESS)
  if (isUrl(document) && written !== undefined && !URL.canParse(document))
    report.problems.push({ path: [...path, 'openapi'], message: 'not a valid URL' })
  if (!address && entry.oauth)
    report.warnings.push(`${formatPath([...path, 'oauth'])}: ignored; it needs "api.baseUrl", the address of the API`)
  const query = fillAll('api.query', given.query)
  const variables = fillAll('api.variables', given.variables)
  if (remote.kind === 'unavailable') return remote
  if (missing.length > 0) return { kind: 'unavailable', reason: missing.join('; ') }
  const { url, headers, personal, oauth, timeoutMs, allowCrossOriginRedirect } = remote
  return {
    kind: 'openapi',
    document,
    ...(address && { url }),
    api: { ...rest, ...(written !== undefined && { baseUrl: url }), query, variables },
    headers,
    ...(personal && { personal }),
    ...(oauth !== undefined && { oauth }),
    timeoutMs,
    ...(allowCrossOriginRedirect && { allowCrossOriginRedirect }),
  }
}

const NO_ADDRESS = { at: [], text: 'http://localhost/' }

/** A relative path counts from the folder of the configuration file. */
export const locateDocument = (server: OpenapiServer, folder: string): OpenapiServer =>
  isUrl(server.document) || isAbsolute(server.document)
    ? server
    : { ...server, document: resolve(folder, server.document) }
