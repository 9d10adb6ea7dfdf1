import { readJson } from './facts/json-triples.ts'
import { readByRules } from './facts/rules.ts'
import type { Enrichment, NewDoc, NewEntity, NewFact, NewJob, Source } from './model.ts'
import { Refusal } from './refusal.ts'
import type { Added, By, MemoryStore } from './store.ts'
import { dateWords } from './text/dates.ts'
import { passagesOf } from './text/passages.ts'
import { indexText } from './text/query.ts'

/** Something to be remembered, as a tool, a command or an importer hands it in. */
export interface Told {
  readonly uuid?: string | undefined
  readonly group: string
  readonly name: string
  readonly body: string
  readonly source: Source
  readonly sourceDescription: string
  readonly validAt?: number | undefined // undefined: now
  readonly saga?: string | undefined
  readonly sagaPrevious?: string | undefined
  readonly chain?: string | undefined // the conversation it is part of; its saga when absent
  readonly entities?: readonly NewEntity[]
  readonly facts?: readonly NewFact[]
  readonly extraction?: {
    readonly excluded?: readonly string[] | undefined
    readonly instructions?: string | undefined
    readonly previous?: readonly string[] | undefined
  }
  readonly regroup?: boolean
}

/** Stores an episode with all that can be read from it at once; durable and searchable when it resolves. */
export type Remember = (store: MemoryStore, told: Told, by?: By) => Promise<Added>

export interface RememberOptions {
  /** Whether a model looks at episodes afterwards. */
  readonly extracts: boolean
  readonly embeds: boolean
  readonly now?: () => number
}

/** Messages that name no conversation follow one another in their group. */
const MESSAGES = 'messages'

const MOST_BYTES = 2 * 1024 * 1024
const LONGEST_NAME = 1000
const LONGEST_TITLE = 60

export const createRemember = ({ extracts, embeds, now = Date.now }: RememberOptions): Remember => {
  const jobsFor = (told: Told): readonly NewJob[] => [
    ...(extracts ? [{ kind: 'extract', payload: { ...told.extraction } } as const] : []),
    ...(embeds ? [{ kind: 'embed' } as const] : []),
    ...(told.regroup ? [{ kind: 'communities' } as const] : []),
    ...(sagaOf(told) ? [{ kind: 'summarise', payload: { saga: sagaOf(told) } } as const] : []),
  ]
  return async (store, told, by) => {
    const body = checkedBody(told)
    const validAt = told.validAt ?? now()
    const episode = {
      uuid: told.uuid?.trim() || undefined,
      group: told.group,
      name: wellFormed(told.name).slice(0, LONGEST_NAME),
      content: body,
      source: told.source,
      sourceDescription: wellFormed(told.sourceDescription),
      validAt,
      saga: sagaOf(told),
      sagaPrevious: told.sagaPrevious?.trim() || undefined,
      chain: told.chain ?? sagaOf(told) ?? (told.source === 'message' ? MESSAGES : undefined),
    }
    return store.add(episode, { ...readingsOf(told, body, validAt), jobs: jobsFor(told) }, by)
  }
}

/** A blank name is none: many a client fills in every argument it sees. */
const sagaOf = ({ saga }: Told): string | undefined => saga?.trim() || undefined

/** Half a character cannot be kept in any database; it becomes the sign for what cannot be shown. */
const wellFormed = (text: string): string => Buffer.from(text, 'utf8').toString('utf8')

const checkedBody = ({ body, source }: Told): string => {
  const bytes = Buffer.byteLength(body)
  if (body.trim() === '') throw new Refusal('episode_body is empty: there is nothing to remember')
  if (bytes > MOST_BYTES)
    throw new Refusal(`episode_body has ${bytes} bytes; at most ${MOST_BYTES} fit into one episode, so split it`)
  if (body.includes('\0')) throw new Refusal('episode_body looks binary (it has a zero byte); remember a text about it')
  if (source === 'json') refuseNonsense(body)
  return wellFormed(body)
}

const refuseNonsense = (body: string): void => {
  try {
    JSON.parse(body)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Refusal(`episode_body is not valid JSON (${reason}); give source "text" for plain text`)
  }
}

/** Passages, and the entities and facts that rules find in them beside those that were stated. */
const readingsOf = (told: Told, body: string, validAt: number): Pick<Enrichment, 'docs' | 'entities' | 'facts'> => {
  const dt = dateWords(validAt)
  const docs = passagesOf({ content: body, source: told.source }).map(({ kind, text, actor }): NewDoc => {
    const read = indexText(text)
    return { kind, text, dt, actor, indexText: read === text ? undefined : read }
  })
  const rules = readByRules(docs, validAt)
  const data = told.source === 'json' ? readJson(body) : { entities: [], facts: [] }
  return {
    docs,
    // What the agent stated comes first: its names and labels are the ones that are kept.
    entities: [...(told.entities ?? []), ...data.entities, ...rules.entities],
    facts: [...(told.facts ?? []), ...data.facts, ...rules.facts],
  }
}

/** A title for a text that came without one: its first words. */
export const titleOf = (text: string): string => {
  const line = text.trim().split(/[\r\n]/, 1)[0] ?? ''
  if (line.length <= LONGEST_TITLE) return line || 'Note'
  const end = line.lastIndexOf(' ', LONGEST_TITLE)
  return `${line.slice(0, end > LONGEST_TITLE / 2 ? end : LONGEST_TITLE)}…`
}
