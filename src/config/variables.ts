import { homedir } from 'node:os'
import { basename, dirname, resolve, sep } from 'node:path'

/** Values for references: variables by name, and the texts of files under `fileKey` and `fileErrorKey`. */
export type Environment = Readonly<Record<string, string | undefined>>

export type FilledText =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'missing'; readonly reason: string } // names the variable or file, never a value

const REFERENCE = /\$\{([^}]*)\}/g
const FILE = /^file:(.+)$/s
// Some editors write `env:NAME`.
const VARIABLE = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s
const INPUT = /^input:(.+)$/s
const UNDERSTOOD = 'write ${NAME}, ${NAME:-default} or ${file:PATH}'

/** The home directory of the user whose variables these are. */
export const homeOf = (env: Environment, platform = process.platform): string =>
  (platform === 'win32' ? env.USERPROFILE : env.HOME) || homedir()

/** The variables that VS Code and Cursor define, unless the environment has variables of these names. */
export const withEditorVariables = (env: Environment, folder: string, home: string): Environment => ({
  workspaceFolder: folder,
  workspaceFolderBasename: basename(folder),
  userHome: home,
  cwd: process.cwd(),
  pathSeparator: sep,
  '/': sep,
  ...env,
})

const EDITOR_FOLDERS: ReadonlySet<string> = new Set(['.vscode', '.cursor', '.gemini'])

/** The folder of a project: that of the configuration file, or the one above if an editor's folder holds the file. */
export const workspaceFolderOf = (file: string): string => {
  const folder = dirname(resolve(file))
  return EDITOR_FOLDERS.has(basename(folder)) ? dirname(folder) : folder
}

/** True if a text refers to the environment or a file. */
export const hasReference = (text: string): boolean => text.search(REFERENCE) >= 0

/** The files a text refers to. */
export const filesIn = (text: string): string[] =>
  [...text.matchAll(REFERENCE)].flatMap(([, inside = '']) => FILE.exec(inside)?.[1] ?? [])

/** The keys for the text of a file and for the reason why it cannot be read; names of variables contain no `=`. */
export const fileKey = (path: string): string => `file:${path}=`
export const fileErrorKey = (path: string): string => `file:${path}=?`

/** The text of a file that was read before, or why it could not be read. */
export const textOfFile = (path: string, env: Environment): FilledText => {
  const text = variableOf(env, fileKey(path))
  if (text !== undefined) return { kind: 'text', text }
  return { kind: 'missing', reason: `the file ${path} cannot be read${variableOf(env, fileErrorKey(path)) ?? ''}` }
}

const variableOf = (env: Environment, key: string): string | undefined =>
  Object.hasOwn(env, key) ? env[key] : undefined

/** Fills in `${NAME}`, `${NAME:-default}` and `${file:PATH}`; as in a shell, an empty variable takes its default too. */
export const fillIn = (text: string, env: Environment): FilledText => {
  const missing: string[] = []

  const fromFile = (path: string): string => {
    const read = textOfFile(path, env)
    if (read.kind === 'text') return read.text
    missing.push(read.reason)
    return ''
  }
  const fromVariable = (name: string, fallback: string | undefined): string => {
    const value = variableOf(env, name)
    if (fallback !== undefined) return value || fallback
    if (value === undefined) missing.push(`the variable ${name} is not set`)
    return value ?? ''
  }

  const filled = text.replace(REFERENCE, (reference, inside: string) => {
    const path = FILE.exec(inside)?.[1]
    if (path !== undefined) return fromFile(path)
    const [, name, fallback] = VARIABLE.exec(inside) ?? (inside === '/' ? ['', inside] : [])
    if (name !== undefined) return fromVariable(name, fallback)
    missing.push(INPUT.test(inside) ? inputReason(reference, inside) : `${reference} is not understood (${UNDERSTOOD})`)
    return ''
  })
  const [reason] = missing
  return reason === undefined ? { kind: 'text', text: filled } : { kind: 'missing', reason }
}

/** VS Code asks its user for inputs. */
const inputReason = (reference: string, inside: string): string => {
  const name = (INPUT.exec(inside)?.[1] ?? '').replace(/\W+/g, '_').toUpperCase()
  return `${reference} is asked for by VS Code; the gateway cannot ask: set a variable and write \${${name}}, or write \${file:PATH}`
}

/** Fills in a text that may be a path: a `~` at its start is the home directory. */
export const fillInPath = (text: string, env: Environment): FilledText =>
  fillIn(/^~(?=$|[/\\])/.test(text) ? text.replace('~', '${userHome}') : text, env)
