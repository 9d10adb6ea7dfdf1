import { win32 } from 'node:path'

/** What the operating system is asked to start; no shell reads it, unless it is a batch file. */
export interface Program {
  readonly file: string
  readonly args: readonly string[]
  readonly isVerbatim: boolean // Windows only: the arguments are quoted already
}

/** The machine a command is looked up on. */
export interface Machine {
  readonly platform: NodeJS.Platform
  readonly env: Readonly<Record<string, string | undefined>>
  readonly exists: (path: string) => boolean
}

const BATCH = /\.(cmd|bat)$/i
const EXTENSIONS = '.COM;.EXE;.BAT;.CMD'

/**
 * Decides what to start for a configured command. Windows starts only real programs by themselves, while `npx`
 * and its like are batch files there: those need cmd.exe. Undefined for arguments no batch file can be given.
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
 * Quotes keep cmd.exe from reading `&`, `|` and the rest. A percent sign would still name a variable, so each is
 * followed by an expansion that is always empty; backslashes before a quote are doubled for whoever parses next.
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

const variable = (env: Machine['env'], name: string): string | undefined => {
  const key = Object.keys(env).find(key => key.toLowerCase() === name.toLowerCase())
  return key === undefined ? undefined : env[key]
}
