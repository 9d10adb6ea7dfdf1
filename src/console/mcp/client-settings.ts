import { LOG_SEVERITIES } from '../../protocol/methods.ts'
import type { JsonObject } from './messages.ts'

/** What a client can declare that it may be asked, with the place in its capabilities. */
export const DECLARABLE = [
  { id: 'form', label: 'Elicitation by a form', member: 'elicitation', part: 'form' },
  { id: 'url', label: 'Elicitation by a link', member: 'elicitation', part: 'url' },
  { id: 'sampling', label: 'Sampling', member: 'sampling', part: undefined },
  { id: 'sampling-tools', label: 'Sampling with tools', member: 'sampling', part: 'tools' },
  { id: 'roots', label: 'Roots', member: 'roots', part: 'listChanged' },
] as const
export type DeclarableId = (typeof DECLARABLE)[number]['id']

/** Extensions of the specification that a client can declare, with what it says of itself. */
export const EXTENSIONS: Readonly<Record<string, JsonObject>> = {
  'io.modelcontextprotocol/tasks': {},
  'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] },
}

export type LogLevel = (typeof LOG_SEVERITIES)[number]
export const LOG_LEVELS: readonly LogLevel[] = LOG_SEVERITIES

/** How the client of the page Explore presents itself, and how it reads lists. */
export interface ClientSettings {
  readonly declared: readonly DeclarableId[]
  readonly extensions: JsonObject // by name
  readonly isPaged: boolean // the next page of a list is read on demand
  readonly logLevel: LogLevel // less severe messages are not sent
  readonly meta: JsonObject // further members of `_meta` of calls
}

export const DEFAULT_SETTINGS: ClientSettings = {
  declared: ['form', 'url', 'sampling', 'roots'],
  extensions: {},
  isPaged: false,
  logLevel: 'debug',
  meta: {},
}

/** The capabilities that the client declares. Members that a revision does not know are ignored by it. */
export const capabilitiesOf = ({ declared, extensions }: ClientSettings): JsonObject => {
  const capabilities: Record<string, JsonObject> = {}
  for (const { id, member, part } of DECLARABLE) {
    if (!declared.includes(id)) continue
    const value = part === undefined ? {} : { [part]: part === 'listChanged' ? true : {} }
    capabilities[member] = { ...capabilities[member], ...value }
  }
  return Object.keys(extensions).length === 0 ? capabilities : { ...capabilities, extensions }
}

/** Whether two settings say the same to servers. */
export const isSameClient = (a: ClientSettings, b: ClientSettings): boolean =>
  a.logLevel === b.logLevel && JSON.stringify(capabilitiesOf(a)) === JSON.stringify(capabilitiesOf(b))

/** The params of a call with the `_meta` that the user has chosen; members that the call has of its own stay. */
export const withCallMeta = (params: JsonObject, { meta }: ClientSettings): JsonObject =>
  Object.keys(meta).length === 0 ? params : { ...params, _meta: { ...meta, ...(params._meta as JsonObject) } }
