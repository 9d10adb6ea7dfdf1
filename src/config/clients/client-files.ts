import { join } from 'node:path'
import { type Environment, homeOf } from '../variables.ts'

/** Where files of a user are; a part of the machine, so that tests can replace it. */
export interface UserPlace {
  readonly env: Environment
  readonly home: string
  readonly platform: NodeJS.Platform
  readonly folder: string // the current directory
}

/** An MCP client whose configuration file can be read and written. */
export interface McpClient {
  readonly title: string
  readonly key: string // of the object that holds the servers
  readonly format: 'json' | 'toml'
  /** The files of the user; the first that exists, or else the first, is written. */
  readonly userFiles: (place: UserPlace) => readonly string[]
  readonly projectFile?: string // relative to the folder of a project
  /** The entry for a server at a URL; absent if the client supports only stdio. */
  readonly httpEntry?: (url: string, headers: Readonly<Record<string, string>>) => object
  readonly stdioEntry: (command: string, args: readonly string[]) => object
}

export const currentPlace = (): UserPlace => ({
  env: process.env,
  home: homeOf(process.env),
  platform: process.platform,
  folder: process.cwd(),
})

/** The folder in which applications keep their settings. */
const applicationFolder = ({ env, home, platform }: UserPlace, name: string): string => {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', name)
  if (platform === 'win32') return join(env.APPDATA || join(home, 'AppData', 'Roaming'), name)
  return join(env.XDG_CONFIG_HOME || join(home, '.config'), name)
}

const inHome =
  (...names: readonly string[]) =>
  ({ home }: UserPlace) => [join(home, ...names)]

const codeFolder = (place: UserPlace): string => join(applicationFolder(place, 'Code'), 'User')

const plainEntry = (command: string, args: readonly string[]): object => ({ command, args })
const typedEntry = (command: string, args: readonly string[]): object => ({ type: 'stdio', command, args })
const withHeaders = (entry: object, key: string, headers: Readonly<Record<string, string>>): object =>
  Object.keys(headers).length > 0 ? { ...entry, [key]: headers } : entry

/** Every client by the name that commands use. The formats are those of the clients' own documentation. */
export const MCP_CLIENTS: Readonly<Record<string, McpClient>> = {
  'claude-desktop': {
    title: 'Claude Desktop',
    key: 'mcpServers',
    format: 'json',
    userFiles: place => [join(applicationFolder(place, 'Claude'), 'claude_desktop_config.json')],
    stdioEntry: plainEntry,
  },
  'claude-code': {
    title: 'Claude Code',
    key: 'mcpServers',
    format: 'json',
    userFiles: ({ env, home }) => [join(env.CLAUDE_CONFIG_DIR || home, '.claude.json')],
    projectFile: '.mcp.json',
    httpEntry: (url, headers) => withHeaders({ type: 'http', url }, 'headers', headers),
    stdioEntry: typedEntry,
  },
  cursor: {
    title: 'Cursor',
    key: 'mcpServers',
    format: 'json',
    userFiles: inHome('.cursor', 'mcp.json'),
    projectFile: '.cursor/mcp.json',
    httpEntry: (url, headers) => withHeaders({ url }, 'headers', headers),
    stdioEntry: plainEntry,
  },
  vscode: {
    title: 'VS Code',
    key: 'servers',
    format: 'json',
    userFiles: place => [join(codeFolder(place), 'mcp.json')],
    projectFile: '.vscode/mcp.json',
    httpEntry: (url, headers) => withHeaders({ type: 'http', url }, 'headers', headers),
    stdioEntry: typedEntry,
  },
  windsurf: {
    title: 'Windsurf',
    key: 'mcpServers',
    format: 'json',
    userFiles: inHome('.codeium', 'windsurf', 'mcp_config.json'),
    httpEntry: (url, headers) => withHeaders({ serverUrl: url }, 'headers', headers),
    stdioEntry: plainEntry,
  },
  gemini: {
    title: 'Gemini CLI',
    key: 'mcpServers',
    format: 'json',
    userFiles: inHome('.gemini', 'settings.json'),
    projectFile: '.gemini/settings.json',
    httpEntry: (url, headers) => withHeaders({ httpUrl: url }, 'headers', headers),
    stdioEntry: plainEntry,
  },
  codex: {
    title: 'Codex',
    key: 'mcp_servers',
    format: 'toml',
    userFiles: ({ env, home }) => [join(env.CODEX_HOME || join(home, '.codex'), 'config.toml')],
    projectFile: '.codex/config.toml',
    httpEntry: (url, headers) => withHeaders({ url }, 'http_headers', headers),
    stdioEntry: plainEntry,
  },
  cline: {
    title: 'Cline',
    key: 'mcpServers',
    format: 'json',
    userFiles: place => [
      ...(place.env.CLINE_MCP_SETTINGS_PATH ? [place.env.CLINE_MCP_SETTINGS_PATH] : []),
      join(codeFolder(place), 'globalStorage', 'saoudrizwan.claude-dev', 'settings', 'cline_mcp_settings.json'),
      join(place.home, '.cline', 'data', 'settings', 'cline_mcp_settings.json'),
    ],
    httpEntry: (url, headers) => withHeaders({ type: 'streamableHttp', url }, 'headers', headers),
    stdioEntry: plainEntry,
  },
  zed: {
    title: 'Zed',
    key: 'context_servers',
    format: 'json',
    userFiles: place => [
      place.platform === 'win32'
        ? join(applicationFolder(place, 'Zed'), 'settings.json')
        : join(place.env.XDG_CONFIG_HOME || join(place.home, '.config'), 'zed', 'settings.json'),
    ],
    projectFile: '.zed/settings.json',
    httpEntry: (url, headers) => withHeaders({ url }, 'headers', headers),
    stdioEntry: plainEntry,
  },
}
