/** The variables references are filled in from. */
export type Environment = Readonly<Record<string, string | undefined>>

export type Filled =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'missing'; readonly reason: string } // names the variable, never a value

const REFERENCE = /\$\{([^}]*)\}/g
// `env:` is how some editors write the same thing.
const VARIABLE = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/** True if a text refers to the environment, so that its value is not the file's. */
export const hasReference = (text: string): boolean => text.search(REFERENCE) >= 0

/** Fills in `${NAME}` and `${NAME:-default}`; as in a shell, an empty variable takes its default too. */
export const fillIn = (text: string, env: Environment): Filled => {
  const missing: string[] = []
  const filled = text.replace(REFERENCE, (reference, inside: string) => {
    const [, name, fallback] = VARIABLE.exec(inside) ?? []
    if (name === undefined) missing.push(`${reference} is not understood (write \${NAME} or \${NAME:-default})`)
    const value = name !== undefined && Object.hasOwn(env, name) ? env[name] : undefined
    if (fallback !== undefined) return value || fallback
    if (name !== undefined && value === undefined) missing.push(`the variable ${name} is not set`)
    return value ?? ''
  })
  const [reason] = missing
  return reason === undefined ? { kind: 'text', text: filled } : { kind: 'missing', reason }
}
