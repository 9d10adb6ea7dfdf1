/** The names in a URI template literal. */
export type VariablesOf<T extends string> = T extends `${string}{${infer V}}${infer Rest}`
  ? (V extends `+${infer Name}` ? Name : V) | VariablesOf<Rest>
  : never

const EXPRESSION = /\{(\+?)(\w+)\}/g

/**
 * Makes the matcher of a URI template with `{name}` (up to the next slash) and `{+name}` (slashes too), the parts of
 * RFC 6570 that can be turned around. It gives the decoded variables, or undefined for a URI of another shape.
 */
export const uriMatcher = (template: string): ((uri: string) => Record<string, string> | undefined) => {
  const names: string[] = []
  const source = template.split(EXPRESSION).map((part, i, parts) => {
    if (i % 3 === 0) return literally(part)
    if (i % 3 === 1) return part ? '(.+)' : '([^/?#]+)'
    names.push(parts[i] as string)
    return ''
  })
  if (/[{}]/.test(template.replace(EXPRESSION, ''))) throw new Error(`Cannot match the URI template ${template}`)
  const pattern = new RegExp(`^${source.join('')}$`)
  return uri => {
    const found = pattern.exec(uri)
    return found ? decode(names, found.slice(1)) : undefined
  }
}

const literally = (literal: string): string => literal.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

const decode = (names: readonly string[], values: readonly string[]): Record<string, string> | undefined => {
  try {
    return Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(values[i] ?? '')]))
  } catch {
    return undefined // half an escape: no URI that the template could have made
  }
}
