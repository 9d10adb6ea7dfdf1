import { figure, table } from './markdown.ts'
import type { DateFigures } from './memory-dates.ts'
import type { measureRecall, Recall, Telling } from './memory-recall.ts'
import type { SpeedFigures } from './memory-speed.ts'
import { type Facts, factsLine, OURS_ALONE } from './results.ts'

export interface MemoryResults extends Facts {
  readonly conversations: number
  readonly recall: Readonly<Record<Telling | 'withoutCaptions', Awaited<ReturnType<typeof measureRecall>>>>
  readonly postgres?: Awaited<ReturnType<typeof measureRecall>> // the same over PostgreSQL, one episode a session
  readonly dates: DateFigures
  readonly speed: SpeedFigures
}

const TARGETS: readonly (readonly [what: string, target: number, read: (recall: Recall) => number])[] = [
  ['turn among the first 5', 70, ({ turns }) => turns[5] ?? 0],
  ['turn among the first 10', 78, ({ turns }) => turns[10] ?? 0],
  ['turn among the first 20', 84, ({ turns }) => turns[20] ?? 0],
  ['source of a fact among the first 10 of `search_memory_facts`', 77, ({ facts }) => facts[10] ?? 0],
  ['session among the first 5', 88, ({ sessions }) => sessions],
]

const recallTable = ({ session, turn, withoutCaptions }: MemoryResults['recall']): string =>
  table(
    ['evidence found, %', 'target', 'all', '1st, 3rd, …', '2nd, 4th, …', 'an episode a turn', 'without captions'],
    TARGETS.map(([what, target, read]) => [
      what,
      `≥ ${target}`,
      `${read(session.all).toFixed(1)} (${read(session.all) >= target ? 'met' : '**missed**'})`,
      ...[session.odd, session.even, turn.all, withoutCaptions.all].map(recall => read(recall).toFixed(1)),
    ]),
  )

const speedTable = ({ add, search }: SpeedFigures): string => {
  const row = (what: string, ours: { p50: number; p95: number }, fts: { p50: number; p95: number }, bar: number) => [
    what,
    `${figure(ours.p50)} / ${figure(ours.p95)}`,
    `${figure(fts.p50)} / ${figure(fts.p95)}`,
    `≤ ${bar}`,
    `${figure(ours.p95 / fts.p95)} (${ours.p95 / fts.p95 <= bar ? 'met' : '**missed**'})`,
  ]
  return table(
    ['p50 / p95 in ms', 'dragoman', 'one FTS5 table', 'bar', 'ratio of p95'],
    [
      row('add an episode', add.dragoman, add.fts, 3),
      row('search facts', search.facts, search.fts, 2),
      row('search passages', search.passages, search.fts, 2),
    ],
  )
}

const besidePostgres = ({ recall, postgres }: MemoryResults): string =>
  postgres === undefined
    ? ''
    : `
**PostgreSQL.** The same conversations and questions over the PostgreSQL driver, one episode a session:

${table(
  ['evidence found, %', 'SQLite', 'PostgreSQL'],
  TARGETS.map(([what, , read]) => [what, read(recall.session.all).toFixed(1), read(postgres.all).toFixed(1)]),
)}
`

/** The section on memory. */
export const memorySection = (results: MemoryResults): string => {
  const { recall, dates, speed, conversations } = results
  const { questions } = recall.session.all
  return `${factsLine(results, OURS_ALONE)}

**Finding.** ${conversations} conversations of LoCoMo (CC BY-NC 4.0, not part of this repository), each told to a memory of its own without any model:
one message episode for each session, pictures by their captions; beside it one episode for each turn, and no captions at all.
${questions.toLocaleString('en')} questions with evidence, asked as they stand. The columns of odd and even conversations show the spread, not a held-out
test: column weights and the factor for the speaker were chosen on a set that may hold these conversations, and the factors for
questions and for times after a dozen settings were tried with both columns in view. Published for the dense retriever DRAGON
on all ten conversations: 56.7 / 66.2 among the first 5 / 10, and 76.7 among the first 25.

${recallTable(recall)}
${besidePostgres(results)}
**Dates.** ${dates.questions} questions for a time whose answer names a year and whose evidence has a word for a time. What is read from the evidence
and the answer share a month: ${dates.sameMonth.toFixed(1)} %; share a day, each as wide as it is stated: ${dates.asStated.toFixed(1)} %; begin on the same day: ${dates.sameDay.toFixed(1)} %. Any of
the times in the evidence may be the right one, our own parser reads the answers too, and its rules were mended on these very
questions: an upper bound, not a test.

**Speed.** ${speed.episodes.toLocaleString('en')} made-up notes of two sentences in one memory, beside the same texts in one external-content FTS5 table with the
same pragmas; ${speed.timed.adds.toLocaleString('en')} adds, each one transaction, and ${speed.timed.searches} queries of four words, in turn. The table’s search is the MATCH with \`LIMIT 200\` and its
rows. Every episode tried was found by the search right after its add: ${speed.foundAtOnce ? 'yes' : '**no**'}.

${speedTable(speed)}`
}
