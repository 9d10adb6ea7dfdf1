import { indexText } from '../../text/query.ts'
import { readByRules, readJson } from './extract/rules.ts'
import { RequestError } from './input-checks.ts'
import type { Enrichment, NewDoc, NewEntity, NewFact, NewJob, Source } from './model.ts'
import type { Added, By, MemoryStore } from './store.ts'
import { dateWords } from './text/dates.ts'
import { passagesOf } from './text/passages.ts'

/** An episode to add, from a tool, a command or an importer. */
export interface EpisodeInput {
  readonly uuid?: string | undefined
  readonly group: string
  readonly name: string
  readonly body: string
  readonly source: Source
  readonly sourceDescription: string
  readonly validAt?: number | undefined // now when absent
  readonly saga?: string | undefined
  readonly sagaPrevious?: string | undefined
  readonly chain?: string | undefined // the key of its conversation; its saga when absent
  readonly entities?: readonly NewEntity[]
  readonly facts?: readonly NewFact[]
  readonly extraction?: {
    readonly excluded?: readonly string[] | undefined
    readonly instructions?: string | undefined
    readonly previous?: readonly string[] | undefined
  }
  readonly rebuildsCommunities?: boolean
}

const SOURCES: readonly string[] = ['text', 'message', 'json', 'fact_triple'] satisfies readonly Source[]

/** The kind of source by its name, in any case; an unknown one is read as text. */
export const sourceOf = (given: string): Source => {
  const name = given.trim().toLowerCase()
  return SOURCES.includes(name) ? (name as Source) : 'text'
}

/** Stores an episode with the entities and facts that rules find in it; durable and searchable when it resolves. */
export type Remember = (store: MemoryStore, input: EpisodeInput, by?: By) => Promise<Added>

export interface RememberOptions {
  readonly extracts: boolean // a model reads episodes in the background
  readonly embeds: boolean // vectors are computed in the background
  readonly now?: () => number
}

const DEFAULT_CHAIN = 'messages' // the conversation of messages that name none, one per group

const MOST_BYTES = 2 * 1024 * 1024
const LONGEST_NAME = 1000
const LONGEST_TITLE = 60

export const createRemember = ({ extracts, embeds, now = Date.now }: RememberOptions): Remember => {
  const jobsFor = (input: EpisodeInput): readonly NewJob[] => [
    ...(extracts ? [{ kind: 'extract', payload: { ...input.extraction } } as const] : []),
    ...(embeds ? [{ kind: 'embed' } as const] : []),
    ...(input.rebuildsCommunities ? [{ kind: 'communities' } as const] : []),
    ...(sagaOf(input) ? [{ kind: 'summarise', payload: { saga: sagaOf(input) } } as const] : []),
  ]
  return async (store, input, by) => {
    const body = checkedBody(input)
    const validAt = input.validAt ?? now()
    const episode = {
      uuid: input.uuid?.trim() || undefined,
      group: input.group,
      name: wellFormed(input.name).slice(0, LONGEST_NAME),
      content: body,
      source: input.source,
      sourceDescription: wellFormed(input.sourceDescription),
      validAt,
      saga: sagaOf(input),
      sagaPrevious: input.sagaPrevious?.trim() || undefined,
      chain: input.chain ?? sagaOf(input) ?? (input.source === 'message' ? DEFAULT_CHAIN : undefined),
    }
    return store.add(episode, { ...enrichmentOf(input, body, validAt), jobs: jobsFor(input) }, by)
  }
}

/** A blank name means none: many clients fill in every argument of a schema. */
const sagaOf = ({ saga }: EpisodeInput): string | undefined => saga?.trim() || undefined

/** No database stores a lone surrogate; it becomes U+FFFD. */
const wellFormed = (text: string): string => Buffer.from(text, 'utf8').toString('utf8')

const checkedBody = ({ body, source }: EpisodeInput): string => {
  const bytes = Buffer.byteLength(body)
  if (body.trim() === '') throw new RequestError('episode_body is empty: there is nothing to remember')
  if (bytes > MOST_BYTES)
    throw new RequestError(`episode_body has ${bytes} bytes; at most ${MOST_BYTES} fit into one episode, so split it`)
  if (body.includes('\0'))
    throw new RequestError('episode_body looks binary (it has a zero byte); remember a text about it')
  if (source === 'json') checkJson(body)
  return wellFormed(body)
}

const checkJson = (body: string): void => {
  try {
    JSON.parse(body)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new RequestError(`episode_body is not valid JSON (${reason}); give source "text" for plain text`)
  }
}

/** The passages, and their entities and facts: those stated by the caller and those found by rules. */
const enrichmentOf = (
  input: EpisodeInput,
  body: string,
  validAt: number,
): Pick<Enrichment, 'docs' | 'entities' | 'facts'> => {
  const dt = dateWords(validAt)
  const docs = passagesOf({ content: body, source: input.source }).map(({ kind, text, actor }): NewDoc => {
    const indexed = indexText(text)
    return { kind, text, dt, actor, indexText: indexed === text ? undefined : indexed }
  })
  const rules = readByRules(docs, validAt)
  const data = input.source === 'json' ? readJson(body) : { entities: [], facts: [] }
  return {
    docs,
    // The first mention of an entity decides its name and labels, so those of the caller come first.
    entities: [...(input.entities ?? []), ...data.entities, ...rules.entities],
    facts: [...(input.facts ?? []), ...data.facts, ...rules.facts],
  }
}

/** The first words of a text, as its title. */
export const titleOf = (text: string): string => {
  const line = text.trim().split(/[\r\n]/, 1)[0] ?? ''
  if (line.length <= LONGEST_TITLE) return line || 'Note'
  const end = line.lastIndexOf(' ', LONGEST_TITLE)
  return `${line.slice(0, end > LONGEST_TITLE / 2 ? end : LONGEST_TITLE)}…`
}
