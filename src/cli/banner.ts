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

/** Colours a text for a terminal, or returns it as it is. */
type Paint = (style: Style, text: string) => string

export const PLAIN: Paint = (_style, text) => text
export const COLOURED: Paint = (style, text) => `\u001b[${STYLES[style][0]}m${text}\u001b[${STYLES[style][1]}m`

/** What is printed as soon as the gateway listens: the version and where each workspace is. */
export const doorLines = (
  version: string,
  origin: string,
  workspaces: readonly WorkspaceStatus[],
  paint: Paint,
): string => {
  const width = widest(workspaces.map(({ name }) => name))
  const doors = workspaces.map(({ name, url }) => `  ${name.padEnd(width)}  ${paint('cyan', url)}`)
  return [`${paint('bold', `dragoman ${version}`)} listening on ${origin}`, ...doors, ''].join('\n')
}

/** What is printed where nobody configured anything: what is served, and where it lies. */
export const homeLine = (data: string, folder: string): string =>
  `\nNo configuration: an agent memory, kept in ${join(data, 'memory')}, and the files of ${folder}, read-only.\n`

/** What is printed when servers take long to answer; nothing if none does. */
export const waitingLine = (workspaces: readonly WorkspaceStatus[]): string => {
  const late = workspaces.flatMap(({ servers }) => servers.filter(({ state }) => state === 'connecting'))
  return late.length > 0 ? `\nWaiting for ${[...new Set(late.map(({ name }) => name))].join(', ')} ...\n` : ''
}

/** What is printed once every server has been tried: which are there, and what is the matter with the others. */
export const serverLines = (workspaces: readonly WorkspaceStatus[], paint: Paint): string => {
  // A server may be in many workspaces, and is the same in all of them.
  const servers = [...new Map(workspaces.flatMap(({ servers }) => servers.map(server => [server.name, server])))]
  const width = widest(servers.map(([name]) => name))
  const lines = servers.map(([name, server]) => `  ${name.padEnd(width)}  ${stateText(server, paint)}`)
  return ['', ...lines, ''].join('\n')
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

const widest = (texts: readonly string[]): number => Math.max(0, ...texts.map(text => text.length))
