import { lexer, type Token } from 'marked'

const LONGEST = 100_000 // characters
const DEEPEST = 30 // quotes and lists in one another
const MOST_WORK = 20_000_000 // some tenths of a second
const MARKERS = /^[ \t]*(?:(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$))[ \t]*)+/gm // of quotes and lists: a rule is none
const PARAGRAPH_END = /\n[ \t]*\n|\n(?=[ \t]*(?:[-*+] |#))/
const DELIMITERS = /[*_~]/g

/** The tokens of a Markdown text; undefined for one that is too long, too deep or takes long to read: it is shown as it is. */
export const readMarkdown = (given: string): readonly Token[] | undefined => {
  const text = given.replace(/\r\n?/g, '\n')
  if (text.length > LONGEST || isDeep(text) || workOf(text) > MOST_WORK) return undefined
  try {
    const tokens = lexer(text)
    return fits(tokens, 2 * DEEPEST) ? tokens : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined // the lexer calls itself for each level
    throw error
  }
}

const isDeep = (text: string): boolean =>
  (text.match(MARKERS) ?? []).some(markers => (markers.match(/[>*+.)-]/g) ?? []).length > DEEPEST)

/** The lexer looks for the end of an emphasis in the rest of the paragraph, at each beginning. */
const workOf = (text: string): number =>
  text.split(PARAGRAPH_END).reduce((sum, part) => sum + part.length * (part.match(DELIMITERS) ?? []).length, 0)

const fits = (tokens: readonly Token[], levels: number): boolean =>
  levels > 0 && tokens.every(token => childrenOf(token).every(children => fits(children, levels - 1)))

const childrenOf = (token: Token): readonly (readonly Token[])[] => {
  const {
    tokens = [],
    items = [],
    header = [],
    rows = [],
  } = token as {
    readonly tokens?: readonly Token[]
    readonly items?: readonly Token[]
    readonly header?: readonly { readonly tokens: readonly Token[] }[]
    readonly rows?: readonly (readonly { readonly tokens: readonly Token[] }[])[]
  }
  return [tokens, items, ...[header, ...rows].flat().map(cell => cell.tokens)]
}

const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }),
)

/** The lexer leaves character references as they are. */
export const decodeReferences = (text: string): string =>
  text.replace(/&(#x?[\da-f]+|\w+);/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return ENTITIES.get(name) ?? whole
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return Number.isInteger(code) && code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
