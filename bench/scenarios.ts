/** One kind of call: what is sent, and what must come back. */
export interface Scenario {
  readonly name: ScenarioName
  readonly arguments: Readonly<Record<string, unknown>>
  readonly progressToken?: string // the result comes after progress notifications
  readonly result: { readonly content: readonly unknown[]; readonly structuredContent?: unknown }
}

export type ScenarioName = 'echo' | 'big' | 'events'

const text = 'The quick brown fox jumps over the lazy dog while the interpreter waits between two courts. 012345'

const rows = Array.from({ length: 70 }, (_, index) => ({
  id: 1_000 + index,
  title: `Entry number ${index}`,
  score: index * 1.25 + 0.5,
  active: index % 3 === 0,
  tags: ['alpha', 'beta', `group-${index % 7}`],
  owner: { name: 'Someone', team: null },
}))

/** A small call, ~100 bytes each way, and one whose result holds 10 KB of structure. */
export const SCENARIOS: readonly Scenario[] = [
  { name: 'echo', arguments: { text }, result: { content: [{ type: 'text', text }] } },
  {
    name: 'big',
    arguments: { limit: 70 },
    result: { content: [{ type: 'text', text: '70 entries' }], structuredContent: { rows } },
  },
]

/** A call that streams 20 progress notifications. Only the bars of durability time it. */
const STREAMED: Scenario = {
  name: 'events',
  arguments: { text },
  progressToken: 'progress',
  result: { content: [{ type: 'text', text }] },
}
export const EVENTS_OF_A_CALL = 20

export const scenario = (name: ScenarioName): Scenario => {
  const found = [...SCENARIOS, STREAMED].find(each => each.name === name)
  if (!found) throw new Error(`there is no scenario ${name}`)
  return found
}
