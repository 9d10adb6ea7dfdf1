import type { Call } from '../define/call.ts'
import type { Glob } from './glob.ts'
import { createMatcher, type Matcher, MatchTimeout, type Spans } from './matcher.ts'
import { Rejected } from './paths.ts'
import type { FoundPath, Root } from './root.ts'
import { decodeText, isBinary } from './text.ts'
import { type Budget, createWalkBudget, walk } from './walk.ts'

const MAX_SEEN = 100_000
const MAX_FILE_BYTES = 2 * 1024 * 1024
const MAX_TOTAL_CHARACTERS = 256 * 1024 * 1024
const MAX_SHOWN_CHARACTERS = 200_000
const MAX_PER_FILE = 100
const SEARCH_MS = 15_000
const BATCH_MS = 2000 // a hundred times what an ordinary pattern takes
const BATCH_CHARACTERS = 512 * 1024
const BATCH_FILES = 64
const MAX_EXCERPT_LINES = 40
const MAX_LINE_CHARACTERS = 500
const TOO_SLOW =
  'The pattern took too long. Nested repetitions such as (a+)+ cause that: simplify it, or search fewer files'

/** What to search, and how much of it to show. */
export interface SearchScope {
  readonly pattern: RegExp
  readonly from: FoundPath
  readonly includes: Glob
  readonly excludes: Glob
  readonly includeIgnored: boolean
  readonly maxMatches: number
  readonly context: { readonly before: number; readonly after: number } // lines around each match
}

/** One match as it is shown. */
interface Excerpt {
  readonly [member: string]: string | number | undefined
  readonly line: number // where the match begins, from 1
  readonly first_line: number | undefined // of the text, if not the same
  readonly text: string
}

interface FileMatches {
  readonly [member: string]: string | readonly Excerpt[]
  readonly path: string
  readonly matches: Excerpt[]
}

/** The matches, and why the search stopped early if it did. */
export interface SearchResult {
  readonly [member: string]: readonly FileMatches[] | number | string | undefined
  readonly files: readonly FileMatches[]
  readonly matches: number
  readonly searched: number
  readonly passed_over: number
  readonly stopped: string | undefined
}

interface TextFile {
  readonly path: string
  readonly text: string
}

/** Reads the files of a scope, matches them in batches, and stops at the first limit it reaches. */
export const runSearch = async (root: Root, scope: SearchScope, call: Call): Promise<SearchResult> => {
  const budget = createWalkBudget(MAX_SEEN, SEARCH_MS)
  const collector = createCollector(scope)
  const matcher = createMatcher(scope.pattern)
  const stopListening = call.signal.onAbort(() => matcher.close())
  try {
    for await (const batch of batchesOf(readTexts(root, scope, budget, call, collector))) {
      await matchBatch(matcher, batch, budget, collector)
      void call.progress(collector.result.searched)
      if (collector.result.stopped) break
    }
  } finally {
    stopListening()
    matcher.close()
  }
  if (budget.isSpent) collector.stop('The search took too long or met too many files; search a smaller part')
  return collector.result
}

const matchBatch = async (
  matcher: Matcher,
  batch: readonly TextFile[],
  budget: Budget,
  collector: MatchCollector,
): Promise<void> => {
  try {
    const texts = batch.map(({ text }) => text)
    const spans = await matcher.match(texts, MAX_PER_FILE, Math.min(BATCH_MS, budget.until - performance.now()))
    for (const [i, file] of batch.entries()) collector.add(file, spans[i] ?? [])
  } catch (error) {
    if (!(error instanceof MatchTimeout)) throw error
    collector.stop(TOO_SLOW)
  }
}

type MatchCollector = ReturnType<typeof createCollector>

/** Collects matches up to the limits of a result. */
const createCollector = ({ maxMatches, context }: SearchScope) => {
  const files: FileMatches[] = []
  const result: { -readonly [Member in keyof SearchResult]: SearchResult[Member] } = {
    files,
    matches: 0,
    searched: 0,
    passed_over: 0,
    stopped: undefined,
  }
  let characters = 0
  /** The first reason counts. */
  const stop = (reason: string): void => {
    result.stopped ??= reason
  }
  const skip = (): void => {
    result.passed_over++
  }
  const add = ({ path, text }: TextFile, spans: Spans): void => {
    result.searched++
    if (spans.length === 0 || result.stopped) return
    const matches: Excerpt[] = []
    for (const excerpt of excerptsOf(text, spans, context)) {
      if (result.matches === maxMatches) stop(`There are more than ${maxMatches} matches; search more narrowly`)
      else if (characters > MAX_SHOWN_CHARACTERS) stop('The answer would be too long; search more narrowly')
      if (result.stopped) break
      matches.push(excerpt)
      result.matches++
      characters += excerpt.text.length
    }
    if (matches.length > 0) files.push({ path, matches })
  }
  return { result: result as SearchResult, stop, skip, add }
}

/** The text of every file in the scope. */
async function* readTexts(
  root: Root,
  scope: SearchScope,
  budget: Budget,
  call: Call,
  collector: MatchCollector,
): AsyncGenerator<TextFile> {
  let characters = 0
  for await (const path of pathsIn(root, scope, budget, call)) {
    const text = await readText(root, path)
    if (text === undefined) collector.skip()
    else yield { path, text }
    characters += text?.length ?? 0
    if (characters > MAX_TOTAL_CHARACTERS) budget.isSpent = true
    if (budget.isSpent) return
  }
}

async function* pathsIn(root: Root, scope: SearchScope, budget: Budget, call: Call): AsyncGenerator<string> {
  const { from, includes, excludes, includeIgnored } = scope
  if (from.kind === 'file') return void (yield from.path)
  const options = { recursive: true, includeIgnored, budget, signal: call.signal }
  // Links are left out: a link to a file of the project would show the same text twice.
  for await (const { kind, path, isLink } of walk(root, from, options))
    if (kind === 'file' && !isLink && includes(path) && !excludes(path)) yield path
}

/** Undefined if the file is not text, too large, or was removed. */
const readText = async (root: Root, path: string): Promise<string | undefined> => {
  try {
    const bytes = await root.read(await root.find(path), MAX_FILE_BYTES)
    return isBinary(bytes) ? undefined : decodeText(bytes)
  } catch (error) {
    if (error instanceof Rejected) return undefined
    throw error
  }
}

/** Groups small files, because each message to the thread costs as much as matching one of them. */
async function* batchesOf(files: AsyncIterable<TextFile>): AsyncGenerator<TextFile[]> {
  let batch: TextFile[] = []
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

/** The lines around each match. Matches on one line are shown once. */
const excerptsOf = (text: string, spans: Spans, { before, after }: SearchScope['context']): Excerpt[] => {
  const starts = lineStarts(text)
  const excerpts: Excerpt[] = []
  let line = 0
  let shownTo = -1
  for (let i = 0; i < spans.length; i += 2) {
    const [begin = 0, end = 0] = [spans[i], spans[i + 1]]
    line = lineAt(starts, begin, line)
    if (line <= shownTo) continue
    shownTo = lineAt(starts, Math.max(begin, end - 1), line)
    const first = Math.max(0, line - before)
    const last = Math.min(starts.length - 1, shownTo + after, first + MAX_EXCERPT_LINES - 1)
    const lines: string[] = []
    for (let at = first; at <= last; at++) lines.push(lineOf(text, starts, at))
    excerpts.push({ line: line + 1, first_line: first === line ? undefined : first + 1, text: lines.join('\n') })
  }
  return excerpts
}

const lineStarts = (text: string): number[] => {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

/** The line an offset is on. Matches are in order, so the search begins at the line of the one before. */
const lineAt = (starts: readonly number[], offset: number, from: number): number => {
  let line = from
  while (line + 1 < starts.length && (starts[line + 1] as number) <= offset) line++
  return line
}

const lineOf = (text: string, starts: readonly number[], line: number): string => {
  const begin = starts[line] as number
  const end = line + 1 < starts.length ? (starts[line + 1] as number) - 1 : text.length
  const shown = text.slice(begin, Math.min(end, begin + MAX_LINE_CHARACTERS)).replace(/\r$/, '')
  return end - begin > MAX_LINE_CHARACTERS ? `${shown}…` : shown
}
