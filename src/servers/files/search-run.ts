import type { Call } from '../define/call.ts'
import type { Excerpt } from './excerpts.ts'
import type { Glob } from './glob.ts'
import { createMatcher, type Matcher, MatchTimeout, type Spans } from './matcher.ts'
import { Refused } from './paths.ts'
import type { Entry, Found, Root } from './root.ts'
import { decodeText, isBinary } from './text.ts'
import { type Budget, createBudget, walk } from './walk.ts'

const MOST_SEEN = 100_000
const MOST_FILE_BYTES = 2 * 1024 * 1024
const MOST_BYTES = 256 * 1024 * 1024
const MOST_ANSWER = 200_000
const MOST_PER_FILE = 100
const LONGEST_MS = 15_000
const BATCH_MS = 2000 // a hundred times what an honest pattern takes
const BATCH_CHARACTERS = 512 * 1024
const BATCH_FILES = 64
const TOO_SLOW =
  'The pattern took too long. Nested repetitions such as (a+)+ make that happen: write it simpler, or search fewer files'

/** What to search, and how to show it. */
export interface Scope {
  readonly pattern: RegExp
  readonly from: Found
  readonly includes: Glob
  readonly excludes: Glob
  readonly includeIgnored: boolean
  readonly mostMatches: number
  readonly excerpts: (text: string, spans: Spans) => Excerpt[]
}

interface Hits {
  readonly path: string
  readonly matches: Excerpt[]
}

/** What a search found, and why it ended early if it did. */
export interface Findings {
  readonly files: readonly { readonly path: string; readonly matches: readonly Excerpt[] }[]
  readonly matches: number
  readonly searched: number
  readonly passed_over: number
  readonly stopped: string | undefined
}

interface Read {
  readonly path: string
  readonly text: string
}

/** Reads the files of a scope, has them matched in batches, and stops at the first limit it meets. */
export const runSearch = async (root: Root, scope: Scope, call: Call): Promise<Findings> => {
  const budget = createBudget(MOST_SEEN, LONGEST_MS)
  const tally = createTally(scope)
  const matcher = createMatcher(scope.pattern)
  const forget = call.signal.onAbort(() => matcher.close())
  try {
    for await (const batch of batches(texts(root, scope, budget, call, tally))) {
      await matchBatch(matcher, batch, budget, tally)
      void call.progress(tally.searched)
      if (tally.stopped) break
    }
  } finally {
    forget()
    matcher.close()
  }
  return tally.findings(
    budget.isSpent ? 'The search took too long or met too many files; search a smaller part' : undefined,
  )
}

const matchBatch = async (matcher: Matcher, batch: readonly Read[], budget: Budget, tally: Tally): Promise<void> => {
  try {
    const texts = batch.map(({ text }) => text)
    const spans = await matcher.match(texts, MOST_PER_FILE, Math.min(BATCH_MS, budget.until - performance.now()))
    for (const [i, { path, text }] of batch.entries()) tally.add(path, text, spans[i] ?? [])
  } catch (error) {
    if (!(error instanceof MatchTimeout)) throw error
    tally.stopped = TOO_SLOW
  }
}

type Tally = ReturnType<typeof createTally>

/** Counts what was found, up to the limits of an answer. */
const createTally = ({ mostMatches, excerpts }: Scope) => {
  const files: Hits[] = []
  let matches = 0
  let characters = 0
  const tally = {
    searched: 0,
    passedOver: 0,
    stopped: undefined as string | undefined,
    add: (path: string, text: string, spans: Spans): void => {
      tally.searched++
      if (spans.length === 0 || tally.stopped) return
      const hits: Hits = { path, matches: [] }
      for (const excerpt of excerpts(text, spans)) {
        if (matches === mostMatches) tally.stopped = `There are more than ${mostMatches} matches; search more narrowly`
        else if (characters > MOST_ANSWER) tally.stopped = 'The answer would be too long; search more narrowly'
        if (tally.stopped) break
        hits.matches.push(excerpt)
        matches++
        characters += excerpt.text.length
      }
      if (hits.matches.length > 0) files.push(hits)
    },
    findings: (otherwise: string | undefined): Findings => ({
      files: files.map(({ path, matches }) => ({ path, matches })),
      matches,
      searched: tally.searched,
      passed_over: tally.passedOver,
      stopped: tally.stopped ?? otherwise,
    }),
  }
  return tally
}

/** The text of every file in the scope. */
async function* texts(root: Root, scope: Scope, budget: Budget, call: Call, tally: Tally): AsyncGenerator<Read> {
  let bytes = 0
  for await (const path of paths(root, scope, budget, call)) {
    const content = await readText(root, path)
    if (content === undefined) tally.passedOver++
    else yield { path, text: content }
    bytes += content?.length ?? 0
    if (bytes > MOST_BYTES) budget.isSpent = true
    if (budget.isSpent) return
  }
}

async function* paths(root: Root, scope: Scope, budget: Budget, call: Call): AsyncGenerator<string> {
  // A link to a file of the project would show the same text twice.
  const isWanted = ({ kind, path, isLink }: Entry): boolean =>
    kind === 'file' && !isLink && scope.includes(path) && !scope.excludes(path)
  if (scope.from.kind === 'file') return void (yield scope.from.path)
  const options = { recursive: true, includeIgnored: scope.includeIgnored, budget, signal: call.signal }
  for await (const entry of walk(root, scope.from, options)) if (isWanted(entry)) yield entry.path
}

/** Undefined for what is not text, too large, or not there any more. */
const readText = async (root: Root, path: string): Promise<string | undefined> => {
  try {
    const bytes = await root.read(await root.find(path), MOST_FILE_BYTES)
    return isBinary(bytes) ? undefined : decodeText(bytes)
  } catch (error) {
    if (error instanceof Refused) return undefined
    throw error
  }
}

/** Groups small files, because each message to the thread costs as much as matching one of them. */
async function* batches(files: AsyncIterable<Read>): AsyncGenerator<Read[]> {
  let batch: Read[] = []
  let characters = 0
  for await (const file of files) {
    batch.push(file)
    characters += file.text.length
    if (characters < BATCH_CHARACTERS && batch.length < BATCH_FILES) continue
    yield batch
    batch = []
    characters = 0
  }
  if (batch.length > 0) yield batch
}
