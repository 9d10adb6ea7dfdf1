import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Asked, Conversation, Session } from './locomo.ts'
import type { Memory, Store } from './memory-program.ts'

/** How the turns of a conversation are handed in. */
export type Telling = 'session' | 'turn' // one episode for each

export const CUTS = [5, 10, 20] as const

/** Shares of the evidence found among the first places, in per cent. */
export interface Recall {
  readonly questions: number
  readonly turns: Readonly<Record<number, number>>
  readonly facts: Readonly<Record<number, number>>
  readonly sessions: number // among the first five sessions met
  readonly firstRank: number // mean reciprocal rank of the first evidence
}

type Found = Omit<Recall, 'questions'> & { readonly half: 'odd' | 'even' }

const GROUP = 'main'

/** Which turn each passage is. */
type Places = ReadonlyMap<number, string>

const tellSession = async (memory: Memory, store: Store, session: Session, telling: Telling): Promise<string[]> => {
  const lines = session.turns.map(({ speaker, text }) => `${speaker}: ${text}`)
  const bodies = telling === 'session' ? [lines.join('\n')] : lines
  const uuids: string[] = []
  for (const [index, body] of bodies.entries()) {
    const told = {
      group: GROUP,
      name: `session ${session.number}`,
      body,
      source: 'message',
      sourceDescription: 'chat',
      validAt: session.at + index,
      chain: `session ${session.number}`,
    } as const
    uuids.push((await memory.remember(store, told)).episode.uuid)
  }
  return uuids
}

const tell = async (memory: Memory, store: Store, conversation: Conversation, telling: Telling): Promise<Places> => {
  const places = new Map<number, string>()
  for (const session of conversation.sessions) {
    const uuids = await tellSession(memory, store, session, telling)
    const docs = (await store.docsOfEpisodes(uuids)).toSorted((a, b) => a.id - b.id)
    if (docs.length !== session.turns.length)
      throw new Error(`${docs.length} passages of ${session.turns.length} turns`)
    for (const [index, { id }] of docs.entries()) places.set(id, session.turns[index]?.id ?? '')
  }
  return places
}

const share = (wanted: readonly string[], found: readonly string[]): number =>
  (100 * wanted.filter(id => found.includes(id)).length) / wanted.length

const sessionOf = (turn: string): string => turn.split(':')[0] ?? turn

const cuts = (wanted: readonly string[], found: readonly string[]): Record<number, number> =>
  Object.fromEntries(CUTS.map(cut => [cut, share(wanted, found.slice(0, cut))]))

const ask = async (
  memory: Memory,
  store: Store,
  { text, evidence }: Asked,
  places: Places,
  now: number,
): Promise<Omit<Found, 'half'>> => {
  const turns = (await memory.passages(store, GROUP, text, now)).map(({ id }) => places.get(id) ?? '')
  const facts = (await memory.facts(store, GROUP, text, now, 20)).map(({ docId }) => places.get(docId ?? -1) ?? '')
  const rank = turns.findIndex(id => evidence.includes(id))
  const sessions = [...new Set(turns.map(sessionOf))].slice(0, 5)
  return {
    turns: cuts(evidence, turns),
    facts: cuts(evidence, facts),
    sessions: share([...new Set(evidence.map(sessionOf))], sessions),
    firstRank: rank < 0 ? 0 : 100 / (rank + 1),
  }
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

const average = (found: readonly Found[]): Recall => ({
  questions: found.length,
  turns: Object.fromEntries(CUTS.map(cut => [cut, mean(found.map(({ turns }) => turns[cut] ?? 0))])),
  facts: Object.fromEntries(CUTS.map(cut => [cut, mean(found.map(({ facts }) => facts[cut] ?? 0))])),
  sessions: mean(found.map(({ sessions }) => sessions)),
  firstRank: mean(found.map(({ firstRank }) => firstRank)),
})

/** Tells each conversation to a memory of its own and asks it the questions. Odd are the first, third, … conversation. */
export const measureRecall = async (
  memory: Memory,
  conversations: readonly Conversation[],
  telling: Telling,
): Promise<Readonly<Record<'all' | 'odd' | 'even', Recall>>> => {
  const folder = mkdtempSync(join(tmpdir(), 'memory-recall-'))
  const found: Found[] = []
  try {
    for (const [index, conversation] of conversations.entries()) {
      const store = await memory.open(join(folder, `${index}.db`))
      const places = await tell(memory, store, conversation, telling)
      const now = conversation.sessions.at(-1)?.at ?? 0
      const half = index % 2 === 0 ? 'odd' : 'even'
      for (const question of conversation.questions)
        found.push({ half, ...(await ask(memory, store, question, places, now)) })
      await store.close()
      console.error(`${telling}  ${conversation.name}  ${conversation.questions.length} questions`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const of = (half: Found['half']) => average(found.filter(one => one.half === half))
  return { all: average(found), odd: of('odd'), even: of('even') }
}
