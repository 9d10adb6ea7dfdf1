import type { Target } from './peer.ts'
import { startConfigured } from './start-dragoman.ts'

/** Tools of all servers together, however many there are. */
export const TOOLS = 10_000

/** Different tools that are called in turn. */
const CALLED = 50

const digits = (number: number, width: number): string => String(number).padStart(width, '0')
const serverName = (index: number): string => `s${digits(index, 3)}`

/** The names of the tools of one server, of so many servers with so many tools together. */
export const toolsOf = (servers: number, tools: number = TOOLS): string[] =>
  Array.from({ length: tools / servers }, (_, index) => `t${digits(index, 5)}`)

/**
 * Names to call: tools of the last server, or of all from the first to the last. They are of equal length in every case,
 * so that the bytes are the same.
 */
export const calledNames = (servers: number, spread: 'one' | 'all', names: Names): string[] =>
  Array.from({ length: CALLED }, (_, index) => {
    const server = spread === 'one' ? servers - 1 : Math.floor((index * servers) / CALLED)
    const tool = `t${digits(index, 5)}`
    return names === 'plain' ? tool : `${serverName(server)}__${tool}`
  })

type Names = 'plain' | 'prefix'

/** Starts the gateway with so many servers in one workspace; all of them are one process elsewhere. */
export const startWorkspace = (
  upstream: Target,
  servers: number,
  names: Names,
  tools: number = TOOLS,
): Promise<Target> => {
  const all = Array.from({ length: servers }, (_, index) => [
    serverName(index),
    { url: new URL(`/${servers}/${index}/${tools}`, upstream.url).href, era: 'modern' },
  ])
  return startConfigured({ mcpServers: Object.fromEntries(all), workspaces: { default: { servers: '*', names } } })
}
