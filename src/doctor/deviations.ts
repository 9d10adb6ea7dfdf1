import { RULES, type RuleName } from './rules.ts'

/** One deviation from the specification. */
export interface Deviation {
  readonly rule: RuleName
  readonly level: 'must' | 'should'
  readonly text: string // the rule
  readonly link: string
  readonly seen: string // what the server did instead
  readonly where: readonly string[] // the transports and revisions it was seen in
}

const LINK = 'https://modelcontextprotocol.io/specification/'
const MOST_SEEN = 300 // characters

/** Collects deviations; the same one in several revisions counts once. */
export class Deviations {
  readonly #found = new Map<string, { readonly rule: RuleName; readonly seen: string; readonly where: Set<string> }>()

  /** Reports a deviation that was seen in a transport and revision. */
  add(rule: RuleName, where: string, seen: string): void {
    const text = seen.length > MOST_SEEN ? `${seen.slice(0, MOST_SEEN)}…` : seen
    const key = `${rule} ${text}`
    const known = this.#found.get(key)
    if (known) known.where.add(where)
    else this.#found.set(key, { rule, seen: text, where: new Set([where]) })
  }

  /** All deviations, those from a MUST first. */
  list(): Deviation[] {
    const all = [...this.#found.values()].map(({ rule, seen, where }) => {
      const { level, text, section } = RULES[rule]
      return { rule, level, text, link: `${LINK}${section}`, seen, where: [...where] }
    })
    return [...all.filter(({ level }) => level === 'must'), ...all.filter(({ level }) => level === 'should')]
  }
}
