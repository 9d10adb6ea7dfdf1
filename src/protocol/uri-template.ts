/** How an operator of RFC 6570 writes its values, and which characters a value cannot contain. */
interface Operator {
  readonly first: string // the character before the first value
  readonly separator: string
  readonly isNamed: boolean // writes `name=value`
  readonly stops: string
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  '': { first: '', separator: ',', isNamed: false, stops: '/?#' },
  '+': { first: '', separator: ',', isNamed: false, stops: '' },
  '#': { first: '#', separator: ',', isNamed: false, stops: '' },
  '.': { first: '.', separator: '.', isNamed: false, stops: '/?#' },
  '/': { first: '/', separator: '/', isNamed: false, stops: '?#' },
  ';': { first: ';', separator: ';', isNamed: true, stops: '/?#' },
  '?': { first: '?', separator: '&', isNamed: true, stops: '#' },
  '&': { first: '&', separator: '&', isNamed: true, stops: '#' },
}

interface Expression {
  readonly text: string // as written: `{?q,limit}`
  readonly operator: Operator
  readonly names: readonly string[] // without modifiers (`:3`, `*`)
}

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g

/** Literal text and expressions in order. An unclosed brace is literal. */
const parseTemplate = (template: string): (string | Expression)[] => {
  const parts: (string | Expression)[] = []
  let end = 0
  for (const { 0: text, 1: operator = '', 2: list = '', index } of template.matchAll(EXPRESSION)) {
    if (index > end) parts.push(template.slice(end, index))
    const names = list.split(',').map(name => name.replace(/[:*].*/, ''))
    parts.push({ text, operator: OPERATORS[operator] as Operator, names })
    end = index + text.length
  }
  if (end < template.length) parts.push(template.slice(end))
  return parts
}

/** The names in a URI template literal. */
export type VariablesOf<T extends string> = T extends `${string}{${infer V}}${infer Rest}`
  ? (V extends `+${infer Name}` ? Name : V) | VariablesOf<Rest>
  : never

const REVERSIBLE = /^\{\+?\w+\}$/

/**
 * Makes the function that reads the variables out of a URI; it returns undefined if the template cannot have made the
 * URI. Throws unless all expressions are `{name}` (up to the next slash) or `{+name}` (slashes too): the ones that can
 * be read back. The pattern backtracks, so the template must be our own; for others there is `compileTemplate`.
 */
export const createVariableReader = (
  template: string,
): ((uri: string) => Readonly<Record<string, string>> | undefined) => {
  const parts = parseTemplate(template)
  const isReversible = (part: string | Expression): boolean =>
    typeof part === 'string' ? !/[{}]/.test(part) : REVERSIBLE.test(part.text)
  if (!parts.every(isReversible)) throw new Error(`Cannot match the URI template ${template}`)
  const source = parts.map(part => {
    if (typeof part === 'string') return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    return part.operator.stops === '' ? '(.+)' : '([^/?#]+)'
  })
  const names = parts.flatMap(part => (typeof part === 'string' ? [] : part.names))
  const pattern = new RegExp(`^${source.join('')}$`)
  return uri => {
    const found = pattern.exec(uri)
    return found ? decodeValues(names, found.slice(1)) : undefined
  }
}

const decodeValues = (names: readonly string[], values: readonly string[]): Record<string, string> | undefined => {
  try {
    return Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(values[i] ?? '')]))
  } catch {
    return undefined // an invalid escape: the template cannot have made this URI
  }
}

/** The URI for these values, written as given, without percent-encoding. An expression without any value stays as it is. */
export const expandTemplate = (template: string, lookUp: (name: string) => string | undefined): string =>
  parseTemplate(template)
    .map(part => (typeof part === 'string' ? part : expandExpression(part, lookUp)))
    .join('')

const expandExpression = (
  { text, operator, names }: Expression,
  lookUp: (name: string) => string | undefined,
): string => {
  const values = names.flatMap(name => {
    const value = lookUp(name)
    return value === undefined ? [] : [operator.isNamed ? `${name}=${value}` : value]
  })
  return values.length > 0 ? operator.first + values.join(operator.separator) : text
}

/** Decides whether a URI template can have made a URI. */
export interface TemplateMatcher {
  readonly literals: number // characters outside expressions: the template with the most is the closest
  matches(uri: string): boolean
}

/** One step through a URI: a character that must be there, or the values of an expression. */
type Step = string | Operator

const MAX_URI_CHARACTERS = 8192

/** Makes the matcher of a template of any server. Its cost is the length of the URI times that of the template. */
export const compileTemplate = (template: string): TemplateMatcher => {
  const parts = parseTemplate(template)
  const steps = parts.flatMap((part): Step[] => (typeof part === 'string' ? [...part] : [part.operator]))
  const literals = parts.reduce((sum, part) => (typeof part === 'string' ? sum + part.length : sum), 0)
  const head = typeof parts[0] === 'string' && parts.length > 1 ? parts[0] : ''
  return { literals, matches: uri => uri.length <= MAX_URI_CHARACTERS && uri.startsWith(head) && walk(steps, uri) }
}

/**
 * Follows all readings at once, a character at a time: `here` has i where the first i steps can have made the text so
 * far, `inside` has i where step i is an expression whose values continue.
 */
const walk = (steps: readonly Step[], uri: string): boolean => {
  let here = addSkipped(steps, new Set([0]))
  let inside = new Set<number>()
  for (const character of uri) {
    const [next, within] = [new Set<number>(), new Set<number>()]
    for (const i of here) {
      const step = steps[i]
      if (typeof step === 'string') step === character && next.add(i + 1)
      else if (step && canBegin(step, character)) within.add(i)
    }
    for (const i of inside) if (!(steps[i] as Operator).stops.includes(character)) within.add(i)
    for (const i of within) next.add(i + 1)
    here = addSkipped(steps, next)
    inside = within
    if (here.size === 0) return false
  }
  return here.has(steps.length)
}

const canBegin = ({ first, stops }: Operator, character: string): boolean =>
  first === '' ? !stops.includes(character) : first === character

/** Adds the steps reached by leaving expressions out: those that write a character of their own may be empty. */
const addSkipped = (steps: readonly Step[], reached: Set<number>): Set<number> => {
  for (const i of reached) {
    const step = steps[i]
    if (typeof step === 'object' && step.first !== '') reached.add(i + 1) // the loop visits what it adds to the set
  }
  return reached
}

/** The candidate with the most literal characters that matches; the first of equals. */
export const closestTemplate = <T extends { readonly matcher: TemplateMatcher }>(
  candidates: readonly T[],
  uri: string,
): T | undefined => {
  let best: T | undefined
  for (const candidate of candidates)
    if ((!best || candidate.matcher.literals > best.matcher.literals) && candidate.matcher.matches(uri))
      best = candidate
  return best
}
