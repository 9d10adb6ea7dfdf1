/** The first line of every export. */
export const HEADER = { type: 'dragoman-memory', version: 1 } as const

/** What a line may be about, in the order of an export: what a line points to comes before it. */
export const LINE_TYPES = ['saga', 'entity', 'episode', 'fact', 'community', 'job'] as const

export type LineType = (typeof LINE_TYPES)[number]

/** A row as a driver reads it; lists come as they are or as JSON. */
export type ExportRow = Readonly<Record<string, unknown>>

/** Which rows the lines of each type are made of, but for the condition on them. */
export type RowsOf = Readonly<Record<LineType, string>>

/** Rows that every driver reads by the same words. */
export const SAME_ROWS: Pick<RowsOf, 'saga' | 'job'> = {
  saga: `SELECT r.*, (SELECT e.uuid FROM episode e WHERE e.saga_id = r.id AND e.id <= r.summarised_to
    ORDER BY e.id DESC LIMIT 1) AS reaches FROM saga r`,
  job: `SELECT r.*, r.kind AS name, NULL AS uuid, e.uuid AS episode FROM job r
    LEFT JOIN episode e ON e.id = r.episode_id`,
}

const when = (value: unknown): string | null => (value === null ? null : new Date(Number(value)).toISOString())
const parsed = (value: unknown): unknown => (typeof value === 'string' ? JSON.parse(value) : value)

const MEMBERS: Readonly<Record<LineType, (row: ExportRow) => Record<string, unknown>>> = {
  saga: row => ({ summary: row.summary, created_at: when(row.created_at), summarised_to: row.reaches }),
  entity: row => ({
    labels: parsed(row.labels),
    aliases: parsed(row.aliases),
    summary: row.summary,
    attributes: parsed(row.attributes),
    created_at: when(row.created_at),
  }),
  episode: row => ({
    content: row.content,
    source: row.source,
    source_description: row.source_description,
    actor: row.actor,
    created_at: when(row.created_at),
    valid_at: when(row.valid_at),
    saga: row.saga,
    previous: row.previous,
    chain: row.chain === null ? null : String(row.chain).slice(String(row.group_id).length + 1),
    meta: parsed(row.meta),
    state: row.state,
    error: row.error,
    docs: parsed(row.docs),
    mentions: parsed(row.mentions),
  }),
  fact: row => ({
    source: row.source,
    target: row.target,
    fact: row.fact,
    valid_at: when(row.valid_at),
    granularity: row.valid_gran,
    invalid_at: when(row.invalid_at),
    created_at: when(row.created_at),
    expired_at: when(row.expired_at),
    reference_time: when(row.reference_time),
    attributes: parsed(row.attributes),
    origin: row.origin,
    confidence: row.confidence,
    superseded_by: row.superseding,
    told: parsed(row.told),
  }),
  community: row => ({ summary: row.summary, created_at: when(row.created_at), members: parsed(row.members) }),
  // Whoever holds a job here does not hold it where it is imported.
  job: row => ({
    episode: row.episode,
    state: row.state === 'failed' ? 'failed' : 'waiting',
    attempts: row.attempts,
    next_at: when(row.next_at),
    error: row.error,
    payload: parsed(row.payload),
    created_at: when(row.created_at),
  }),
}

/** A row as a line of JSON; equal rows give equal lines, whichever driver read them. */
export const lineOf = (type: LineType, row: ExportRow): string => {
  const { uuid, group_id: group, name } = row
  return JSON.stringify({ type, ...(uuid !== null && { uuid }), group, name, ...MEMBERS[type](row) })
}
