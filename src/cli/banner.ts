import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { isModern, isRevision } from '../protocol/revisions.ts'
import type { ServerStatus, WorkspaceStatus } from '../protocol/status.ts'

const STYLES = {
  bold: [1, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  grey: [90, 39],
} as const
type Style = keyof typeof STYLES

/** Colours a text for a terminal, or returns it unchanged. */
type Paint = (style: Style, text: string) => string

export const PLAIN: Paint = (_style, text) => text
export const COLOURED: Paint = (style, text) => `\u001b[${STYLES[style][0]}m${text}\u001b[${STYLES[style][1]}m`

interface StartedGateway {
  readonly version: string
  readonly origin: string
  readonly file?: string | undefined // its configuration
}

/** Printed when the gateway listens: the version, the configuration file and the URL of each workspace. */
export const listeningLines = (
  { version, origin, file }: StartedGateway,
  workspaces: readonly WorkspaceStatus[],
  paint: Paint,
): string => {
  const rows = workspaces.map(({ name, url }) => [name, paint('cyan', url)] as const)
  const first = `${paint('bold', `dragoman ${version}`)} listening on ${origin}`
  return [first, ...(file === undefined ? [] : [`configuration ${file}`]), ...aligned(rows), ''].join('\n')
}

const ALL_ADDRESSES: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Printed if the gateway listens on all addresses: the URL for other machines; empty otherwise. */
export const networkLine = (host: string, url: string, interfaces = networkInterfaces()): string => {
  const addresses = Object.values(interfaces).flatMap(list => list ?? [])
  const other = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
  if (!ALL_ADDRESSES.has(host) || other === undefined) return ''
  return `\nOther machines reach it at ${url.replace(/(?<=\/\/)(\[[^\]]*\]|[^:/]+)/, other)}\n`
}

/** Printed when the gateway listens: where its console is; in a terminal, a link that signs in as the owner, once. */
export const consoleLine = (origin: string, link: string | undefined, paint: Paint): string =>
  link === undefined
    ? `\nConsole: ${paint('cyan', `${origin}/`)}\n`
    : `\nConsole: ${paint('cyan', link)}  (signs you in once, within ten minutes)\n`

/** Printed without a configuration: what is served, and where the memory is stored. */
export const defaultServersLine = (data: string, folder: string): string =>
  `\nNo configuration: serving an agent memory, stored in ${join(data, 'memory')}, and the files of ${folder}, read-only.\n`

/** Printed when servers are slow to connect; empty if none is. */
export const waitingLine = (workspaces: readonly WorkspaceStatus[]): string => {
  const late = workspaces.flatMap(({ servers }) => servers.filter(({ state }) => state === 'connecting'))
  return late.length > 0 ? `\nWaiting for ${[...new Set(late.map(({ name }) => name))].join(', ')} ...\n` : ''
}

/** Printed once every server has been tried: the state of each, once also if it is in several workspaces. */
export const serverLines = (workspaces: readonly WorkspaceStatus[], paint: Paint): string => {
  const servers = new Map(workspaces.flatMap(({ servers }) => servers.map(server => [server.name, server])))
  return ['', ...aligned([...servers].map(([name, server]) => [name, stateText(server, paint)])), ''].join('\n')
}

const STATES: Readonly<Record<ServerStatus['state'], { readonly word: string; readonly style: Style }>> = {
  ready: { word: 'connected', style: 'green' },
  connecting: { word: 'connecting', style: 'yellow' },
  untried: { word: 'not tried', style: 'grey' },
  degraded: { word: 'degraded', style: 'yellow' },
  down: { word: 'down', style: 'red' },
  disabled: { word: 'disabled', style: 'grey' },
  unavailable: { word: 'unavailable', style: 'yellow' },
}

const stateText = ({ state, revision, tools, reason }: ServerStatus, paint: Paint): string => {
  const { word, style } = STATES[state]
  const details = [
    ...(isRevision(revision) ? [`${revision} (${isModern(revision) ? 'modern' : 'legacy'})`] : []),
    ...(tools === undefined ? [] : [`${tools} ${tools === 1 ? 'tool' : 'tools'}`]),
  ]
  return [paint(style, word), ...details].join(', ') + (reason ? `: ${reason}` : '')
}

const aligned = (rows: readonly (readonly [name: string, text: string])[]): string[] => {
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`)
}
