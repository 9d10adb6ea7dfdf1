import type { ConfigPath } from './json-text.ts'

/** One entry of `mcpServers`, or of `servers`, before it is checked. */
export interface RawEntry {
  readonly name: string
  readonly raw: unknown
  readonly path: ConfigPath
}

/** `mcpServers` is the key of most clients, `servers` that of VS Code. */
export const SERVER_KEYS = ['mcpServers', 'servers'] as const

export type RawObject = Readonly<Record<string, unknown>>

/** An object of the file, as opposed to a value or a list. */
export const isRawObject = (value: unknown): value is RawObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The servers of a configuration file, in its order. */
export const entriesOf = (root: unknown): RawEntry[] =>
  SERVER_KEYS.flatMap(key => {
    const servers = isRawObject(root) ? root[key] : undefined
    return isRawObject(servers) ? Object.entries(servers).map(([name, raw]) => ({ name, raw, path: [key, name] })) : []
  })
