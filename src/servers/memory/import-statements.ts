import { contentHash } from './ids.ts'
import * as read from './import-line.ts'
import type { Community, DocKind, NewDoc, NewEntity } from './model.ts'
import { StoreError } from './store.ts'

type Line = read.Line
type Value = string | number | null | Uint8Array

/** A statement that every driver takes. */
export interface Statement {
  readonly sql: string
  readonly values: readonly Value[]
}

/** The row of an earlier line's entity that this line points to. */
export const entityIn = (entities: ReadonlyMap<string, number>, line: Line, uuid: unknown): number => {
  const id = entities.get(String(uuid))
  if (id === undefined)
    throw new StoreError('invalid', `Line ${line.number} names the entity ${uuid}, which no line before it has.`)
  return id
}

/** The saga of a line; nothing is inserted when it is there. */
export const sagaInsert = (line: Line): Statement => ({
  sql: 'INSERT INTO saga (uuid, group_id, name, summary, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  values: [
    read.textIn(line, 'uuid'),
    read.textIn(line, 'group'),
    read.textIn(line, 'name'),
    read.maybeTextIn(line, 'summary') ?? '',
    read.dateIn(line, 'created_at'),
  ],
})

/** The entity of a line; one that is known keeps what is said of it here. */
export const entityOf = (line: Line, isKnown: boolean): NewEntity => ({
  uuid: read.textIn(line, 'uuid'),
  name: read.textIn(line, 'name'),
  ...(!isKnown && {
    labels: read.textsIn(line, 'labels'),
    aliases: read.textsIn(line, 'aliases'),
    summary: read.maybeTextIn(line, 'summary') ?? '',
    attributes: JSON.parse(read.jsonIn(line, 'attributes')) as Record<string, unknown>,
  }),
})

const docOf = (item: unknown): NewDoc => {
  const [kind, text, indexText, actor, dt] = Array.isArray(item) ? item : []
  return {
    kind: (['turn', 'passage', 'leaf'].includes(kind) ? kind : 'passage') as DocKind,
    text: String(text ?? ''),
    dt: String(dt ?? ''),
    indexText: typeof indexText === 'string' ? indexText : undefined,
    actor: typeof actor === 'string' ? actor : undefined,
  }
}

/** The passages of an episode's line. */
export const docsOf = (line: Line): NewDoc[] => read.listIn(line, 'docs').map(docOf)

/** The conversation that an episode's line belongs to. */
export const chainOf = (line: Line): string | undefined => {
  const chain = read.maybeTextIn(line, 'chain')
  return chain === null ? undefined : `${read.textIn(line, 'group')}/${chain}`
}

const hashOf = (line: Line): Uint8Array =>
  contentHash({
    name: read.textIn(line, 'name'),
    content: read.textIn(line, 'content'),
    source: read.textIn(line, 'source'),
    sourceDescription: read.maybeTextIn(line, 'source_description') ?? '',
    saga: read.maybeTextIn(line, 'saga') ?? undefined,
  })

const SOURCES = ['text', 'message', 'json', 'fact_triple']

/** The episode of a line; nothing is inserted when it is there. */
export const episodeInsert = (line: Line): Statement => {
  const [hash, source] = [hashOf(line), read.textIn(line, 'source')]
  return {
    sql: `INSERT INTO episode (uuid, group_id, name, content, source, source_description, actor, created_at, valid_at,
      content_hash, saga_id, prev_id, chain, meta, state, error)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (SELECT id FROM saga WHERE group_id = ?2 AND name = ?11),
        (SELECT id FROM episode WHERE uuid = ?12), ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING`,
    values: [
      read.textIn(line, 'uuid'),
      read.textIn(line, 'group'),
      read.textIn(line, 'name'),
      read.textIn(line, 'content'),
      SOURCES.includes(source) ? source : 'text',
      read.maybeTextIn(line, 'source_description') ?? '',
      read.maybeTextIn(line, 'actor'),
      read.dateIn(line, 'created_at'),
      read.dateIn(line, 'valid_at'),
      hash,
      read.maybeTextIn(line, 'saga'),
      read.maybeTextIn(line, 'previous'),
      chainOf(line) ?? null,
      read.jsonIn(line, 'meta'),
      read.maybeTextIn(line, 'state') ?? 'ready',
      read.maybeTextIn(line, 'error'),
    ],
  }
}

/** Finds the episode of a line where it is there already, under its uuid or another. */
export const episodeSearch = (line: Line): Statement => ({
  sql: 'SELECT id FROM episode WHERE uuid = ? OR (group_id = ? AND valid_at = ? AND content_hash = ?)',
  values: [read.textIn(line, 'uuid'), read.textIn(line, 'group'), read.dateIn(line, 'valid_at'), hashOf(line)],
})

/** The community of a line, but for its members. */
export const communityOf = (line: Line): Pick<Community, 'uuid' | 'group' | 'name' | 'summary' | 'createdAt'> => ({
  uuid: read.textIn(line, 'uuid'),
  group: read.textIn(line, 'group'),
  name: read.textIn(line, 'name'),
  summary: read.maybeTextIn(line, 'summary') ?? '',
  createdAt: read.dateIn(line, 'created_at'),
})

/** The work of a line, about the given episode. */
export const jobInsert = (line: Line, episode: number | null): Statement => ({
  sql: `INSERT INTO job (group_id, episode_id, kind, state, attempts, next_at, error, payload, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  values: [
    read.textIn(line, 'group'),
    episode,
    read.textIn(line, 'name'),
    read.maybeTextIn(line, 'state') === 'failed' ? 'failed' : 'waiting',
    read.numberIn(line, 'attempts', 0),
    read.dateIn(line, 'next_at'),
    read.maybeTextIn(line, 'error'),
    read.jsonIn(line, 'payload'),
    read.dateIn(line, 'created_at'),
  ],
})
