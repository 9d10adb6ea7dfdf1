import { win32 } from 'node:path'

/** What is passed to `spawn`; no shell reads it, unless it is a batch file. */
export interface Program {
  readonly file: string
  readonly args: readonly string[]
  readonly isVerbatim: boolean // Windows only: the arguments are quoted already
}

type Variables = Readonly<Record<string, string | undefined>>

/** The machine a command is looked up on. */
export interface Machine {
  readonly platform: NodeJS.Platform
  readonly env: Variables
  readonly exists: (path: string) => boolean
}

const BATCH = /\.(cmd|bat)$/i
const EXTENSIONS = '.COM;.EXE;.BAT;.CMD'

/**
 * Resolves a configured command. Windows starts only executables directly, while `npx` and the like are batch files there:
 * those need cmd.exe. Undefined for arguments that a batch file cannot be given.
 */
export const programOf = (command: string, args: readonly string[], machine: Machine): Program | undefined => {
  const plain: Program = { file: command, args, isVerbatim: false }
  if (machine.platform !== 'win32') return plain
  const found = lookUp(command, machine)
  if (found === undefined || !BATCH.test(found)) return { ...plain, file: found ?? command }
  if (args.some(arg => /[\r\n\0]/.test(arg))) return undefined
  const line = [`"${found}"`, ...args.map(quoteForBatch)].join(' ')
  const shell = variable(machine.env, 'ComSpec') ?? 'cmd.exe'
  return { file: shell, args: ['/d', '/e:ON', '/v:OFF', '/s', '/c', `"${line}"`], isVerbatim: true }
}

/**
 * Quotes keep cmd.exe from reading `&`, `|` and the rest. A percent sign would still name a variable, so each is followed by
 * an expansion that is always empty. Backslashes before a quote are doubled for the program that parses the line.
 */
const quoteForBatch = (arg: string): string => {
  const text = arg.replace(/(\\*)("|$)/g, (_, slashes: string, quote: string) => slashes + slashes + quote + quote)
  return `"${text.replaceAll('%', '%%cd:~,%')}"`
}

const lookUp = (command: string, { env, exists }: Machine): string | undefined => {
  const extensions = (variable(env, 'PATHEXT') || EXTENSIONS).split(';').filter(extension => extension !== '')
  const isComplete = extensions.some(extension => command.toLowerCase().endsWith(extension.toLowerCase()))
  const names = isComplete ? [command] : extensions.map(extension => command + extension.toLowerCase())
  const folders = /[\\/]/.test(command)
    ? ['']
    : (variable(env, 'PATH') ?? '').split(';').filter(folder => folder !== '')
  return folders.flatMap(folder => names.map(name => (folder ? win32.join(folder, name) : name))).find(exists)
}

const variable = (env: Variables, name: string): string | undefined => {
  const key = Object.keys(env).find(key => key.toLowerCase() === name.toLowerCase())
  return key === undefined ? undefined : env[key]
}

/** The environment variable with the tags by which all processes that a child starts are found. */
export const TAG_VARIABLE = 'DRAGOMAN_CHILD'

const POSIX: ReadonlySet<string> = new Set(
  'PATH HOME LANG TMPDIR USER LOGNAME SHELL TERM TZ'.split(' '), // and LC_*
)
const WINDOWS: ReadonlySet<string> = new Set(
  `PATH PATHEXT SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC TEMP TMP USERNAME USERPROFILE HOMEDRIVE HOMEPATH APPDATA
  LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROCESSOR_ARCHITECTURE`.split(/\s+/),
)

/** The environment of a child: the configured variables, the few that programs need, and the tag; nothing else. */
export const environmentOf = (
  configured: Readonly<Record<string, string>>,
  tag: string,
  inherited: Variables,
  platform: NodeJS.Platform,
): Record<string, string> => {
  const isWindows = platform === 'win32'
  const nameOf = (name: string): string => (isWindows ? name.toUpperCase() : name)
  const taken = new Set(Object.keys(configured).map(nameOf))
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(inherited))
    if (value !== undefined && isSafe(name, value, isWindows) && !taken.has(nameOf(name))) env[name] = value
  // The tag of a gateway that started this one is kept, so that it finds these children too.
  const outer = inherited[TAG_VARIABLE]
  return { ...env, ...configured, [TAG_VARIABLE]: outer ? `${outer},${tag}` : tag }
}

const isSafe = (name: string, value: string, isWindows: boolean): boolean => {
  if (value.startsWith('()')) return false // a function that some shells export; it would run as code
  return isWindows ? WINDOWS.has(name.toUpperCase()) : POSIX.has(name) || name.startsWith('LC_')
}
