/** A JSON value that keeps the source text of its scalars: numbers are never turned into floats. */
export type JsonNode = JsonObjectNode | JsonArrayNode | JsonScalarNode

export interface JsonObjectNode {
  readonly kind: 'object'
  readonly members: readonly JsonMember[] // in the order of the text; keys may occur twice
}

export interface JsonArrayNode {
  readonly kind: 'array'
  readonly elements: readonly JsonNode[]
}

export interface JsonScalarNode {
  readonly kind: 'scalar'
  readonly text: string // as it was written: `"a\u0062"`, `1.0`, `true`
}

export interface JsonMember {
  readonly key: string
  readonly value: JsonNode
}

/** A place in a value: names of members, and numbers of elements. */
export type JsonPath = readonly (string | number)[]

const MOST_DEPTH = 200
const TOKEN = /\s*("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[[\]{},:])/y

/** Reads a text; undefined if it is no JSON (a message that was cut, for example) or nested too deeply. */
export const readJsonNode = (text: string): JsonNode | undefined => {
  const pattern = new RegExp(TOKEN)
  let at = 0
  let next = '' // the current piece; empty at the end, and where no piece of JSON follows
  const advance = (): void => {
    pattern.lastIndex = at
    next = pattern.exec(text)?.[1] ?? ''
    if (next !== '') at = pattern.lastIndex
  }
  /** The value that begins with the current piece; leaves the piece after it as the current one. */
  const readValue = (depth: number): JsonNode | undefined => {
    if (depth > MOST_DEPTH) return undefined
    if (next === '{') return readObject(depth)
    if (next === '[') return readArray(depth)
    if (next === '' || ']}:,'.includes(next)) return undefined
    const node: JsonNode = { kind: 'scalar', text: next }
    advance()
    return node
  }
  const readObject = (depth: number): JsonNode | undefined => {
    const members: JsonMember[] = []
    advance()
    while (next !== '}') {
      const key = next.startsWith('"') ? decodeString(next) : undefined
      if (key === undefined) return undefined
      advance()
      if (next !== ':') return undefined
      advance()
      const value = readValue(depth + 1)
      if (!value) return undefined
      members.push({ key, value })
      if (!readSeparator('}')) return undefined
    }
    advance()
    return { kind: 'object', members }
  }
  const readArray = (depth: number): JsonNode | undefined => {
    const elements: JsonNode[] = []
    advance()
    while (next !== ']') {
      const value = readValue(depth + 1)
      if (!value) return undefined
      elements.push(value)
      if (!readSeparator(']')) return undefined
    }
    advance()
    return { kind: 'array', elements }
  }
  /** A comma with something after it, or the end. */
  const readSeparator = (end: string): boolean => {
    if (next === end) return true
    if (next !== ',') return false
    advance()
    return next !== end
  }

  advance()
  const node = readValue(0)
  return next === '' && text.slice(at).trim() === '' ? node : undefined
}

/** The value at a path; undefined if there is none. */
export const nodeAt = (node: JsonNode | undefined, path: JsonPath): JsonNode | undefined => {
  let found = node
  for (const step of path) {
    if (found?.kind === 'object') found = found.members.find(({ key }) => key === step)?.value
    else found = found?.kind === 'array' ? found.elements[Number(step)] : undefined
  }
  return found
}

/** The string at a path; undefined if there is another value, or none. */
export const stringAt = (node: JsonNode | undefined, path: JsonPath): string | undefined => {
  const found = nodeAt(node, path)
  return found?.kind === 'scalar' && found.text.startsWith('"') ? decodeString(found.text) : undefined
}

/** Whether two values are equal: members in any order, strings in any notation, numbers digit by digit. */
export const isSameNode = (a: JsonNode, b: JsonNode): boolean => {
  if (a.kind === 'scalar')
    return b.kind === 'scalar' && (a.text === b.text || (a.text.startsWith('"') && stringAt(a, []) === stringAt(b, [])))
  if (a.kind === 'array')
    return (
      b.kind === 'array' &&
      a.elements.length === b.elements.length &&
      a.elements.every((element, at) => isSameNode(element, b.elements[at] as JsonNode))
    )
  if (b.kind !== 'object' || a.members.length !== b.members.length) return false
  const others = new Map(b.members.map(({ key, value }) => [key, value]))
  return a.members.every(({ key, value }) => {
    const other = others.get(key)
    return other !== undefined && isSameNode(value, other)
  })
}

/** A path as it is written in code: `params._meta["io.x/y"]`, `result.tools[2].name`. */
export const formatJsonPath = (path: JsonPath): string =>
  path
    .map((step, at) => {
      if (typeof step === 'number') return `[${step}]`
      if (!/^[A-Za-z_$][\w$]*$/.test(step)) return `[${JSON.stringify(step)}]`
      return at === 0 ? step : `.${step}`
    })
    .join('')

const decodeString = (text: string): string | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
