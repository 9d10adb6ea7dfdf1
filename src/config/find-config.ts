import { readFile, stat } from 'node:fs/promises'
import { join, posix, win32 } from 'node:path'
import { parseJsonText } from './json-text.ts'
import { isGateway } from './own-entries.ts'
import { entriesOf } from './server-entries.ts'
import { type Environment, homeOf } from './variables.ts'

/** What the search for a configuration file depends on. */
export interface ConfigSearch {
  readonly env: Environment
  readonly folder?: string // default: the current directory
  readonly platform?: NodeJS.Platform
  readonly home?: string
}

const NAME = 'dragoman.json'

/** Files in the current directory, in the order of the search. */
const PROJECT_FILES: readonly string[] = [NAME, '.mcp.json', '.vscode/mcp.json']

/**
 * The configuration file that is used if none is named: in the current directory, then in the user's configuration
 * directory. A file of another program counts only if it names a server that is not this gateway.
 */
export const findConfig = async (search: ConfigSearch): Promise<string | undefined> => {
  const folder = search.folder ?? process.cwd()
  for (const file of PROJECT_FILES.map(name => join(folder, name)))
    if ((await isFile(file)) && (file.endsWith(NAME) || (await namesServers(file)))) return file
  return findUserConfig(search)
}

/** The configuration file of the user, for programs that run in any directory. */
export const findUserConfig = async (search: ConfigSearch): Promise<string | undefined> => {
  for (const file of userConfigFiles(search)) if (await isFile(file)) return file
  return undefined
}

/** Where the configuration file of the user may be; the first is where a new one belongs. */
export const userConfigFiles = ({
  env,
  platform = process.platform,
  home = homeOf(env, platform),
}: ConfigSearch): string[] => {
  if (platform === 'win32') return [win32.join(env.APPDATA || win32.join(home, 'AppData', 'Roaming'), 'dragoman', NAME)]
  const { XDG_CONFIG_HOME: base = '' } = env
  // The XDG base directory specification: relative paths are ignored.
  const xdg = posix.join(posix.isAbsolute(base) ? base : posix.join(home, '.config'), 'dragoman', NAME)
  return platform === 'darwin' ? [xdg, posix.join(home, 'Library', 'Application Support', 'dragoman', NAME)] : [xdg]
}

const isFile = async (file: string): Promise<boolean> =>
  stat(file).then(
    found => found.isFile(),
    () => false,
  )

/** True also for a file that cannot be read: loading it says why. */
const namesServers = async (file: string): Promise<boolean> => {
  try {
    const { value } = parseJsonText(await readFile(file, 'utf8'))
    return entriesOf(value).some(({ raw }) => !isGateway(raw))
  } catch {
    return true
  }
}
