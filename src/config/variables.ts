/** Values for references: variables by name, and the texts of files under `fileKey` and `fileErrorKey`. */
export type Environment = Readonly<Record<string, string | undefined>>

export type FilledText =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'missing'; readonly reason: string } // names the variable or file, never a value

const REFERENCE = /\$\{([^}]*)\}/g
const FILE = /^file:(.+)$/s
// Some editors write `env:NAME`.
const VARIABLE = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s
const UNDERSTOOD = 'write ${NAME}, ${NAME:-default} or ${file:PATH}'

/** True if a text refers to the environment or a file. */
export const hasReference = (text: string): boolean => text.search(REFERENCE) >= 0

/** The files a text refers to. */
export const filesIn = (text: string): string[] =>
  [...text.matchAll(REFERENCE)].flatMap(([, inside = '']) => FILE.exec(inside)?.[1] ?? [])

/** The keys for the text of a file and for the reason why it cannot be read; names of variables contain no `=`. */
export const fileKey = (path: string): string => `file:${path}=`
export const fileErrorKey = (path: string): string => `file:${path}=?`

/** Fills in `${NAME}`, `${NAME:-default}` and `${file:PATH}`; as in a shell, an empty variable takes its default too. */
export const fillIn = (text: string, env: Environment): FilledText => {
  const missing: string[] = []
  const own = (key: string): string | undefined => (Object.hasOwn(env, key) ? env[key] : undefined)

  const fromFile = (path: string): string => {
    const value = own(fileKey(path))
    if (value === undefined) missing.push(`the file ${path} cannot be read${own(fileErrorKey(path)) ?? ''}`)
    return value ?? ''
  }
  const fromVariable = (name: string, fallback: string | undefined): string => {
    const value = own(name)
    if (fallback !== undefined) return value || fallback
    if (value === undefined) missing.push(`the variable ${name} is not set`)
    return value ?? ''
  }

  const filled = text.replace(REFERENCE, (reference, inside: string) => {
    const path = FILE.exec(inside)?.[1]
    if (path !== undefined) return fromFile(path)
    const [, name, fallback] = VARIABLE.exec(inside) ?? []
    if (name !== undefined) return fromVariable(name, fallback)
    missing.push(`${reference} is not understood (${UNDERSTOOD})`)
    return ''
  })
  const [reason] = missing
  return reason === undefined ? { kind: 'text', text: filled } : { kind: 'missing', reason }
}
