import type { Sql } from '../../../stores/sql.ts'
import type { Instant, Job, JobKind, NewJob } from '../model.ts'
import { type JobQuery, type Lease, StoreError } from '../store.ts'
import { lockGroups, type StoreContext } from './context.ts'
import { inGroups, insertRow, jobOf, SELECT_JOBS } from './rows.ts'

/** Whether a job is about a group rather than an episode: one waiting job is enough. */
export const isOfGroup = (kind: JobKind): boolean => kind === 'communities' || kind === 'summarise'

// A lease or a delay beyond these was written by a clock that has been set back since.
const LONGEST_LEASE_MS = 15 * 60_000
const LONGEST_DELAY_MS = 24 * 60 * 60_000

/** The same job of a group if it is waiting; one that runs may have read the group before what this one is for. */
const findWaiting = async (context: StoreContext, group: string, kind: JobKind, payload: string) => {
  if (!isOfGroup(kind)) return undefined
  await lockGroups(context, [group])
  // A row that another worker is leasing is waited for, and is then no longer waiting.
  const sql = `SELECT id FROM job WHERE kind = ? AND group_id = ? AND payload = ? AND state = 'waiting'
    ORDER BY id LIMIT 1${context.db.dialect.forUpdate}`
  return (await context.db.get<{ id: number }>(sql, kind, group, payload))?.id
}

/** Enqueues a job; a job of a group only if it is not waiting already. Returns its id. */
export const addJob = async (context: StoreContext, group: string, job: NewJob, episode?: number): Promise<number> => {
  const { db, now } = context
  const payload = JSON.stringify(job.payload ?? {})
  const waiting = await findWaiting(context, group, job.kind, payload)
  if (waiting !== undefined) return waiting
  return insertRow(db, 'job', {
    group_id: group,
    episode_id: isOfGroup(job.kind) ? null : (episode ?? null),
    kind: job.kind,
    state: 'waiting',
    next_at: job.notBefore ?? now(),
    payload,
    created_at: now(),
  })
}

const readJob = async ({ db }: StoreContext, id: number): Promise<Job> => {
  const row = await db.get(`${SELECT_JOBS} WHERE j.id = ?`, id)
  if (!row) throw new StoreError('missing', `There is no job ${id}.`)
  return jobOf(row)
}

// Jobs of one kind and group run in order: only the first unfinished one can be due.
const IS_FIRST = `j.id = (SELECT min(o.id) FROM job o
  WHERE o.kind = j.kind AND o.group_id = j.group_id AND o.state <> 'failed')`

const selectDue = ({ dialect }: Sql): string => `SELECT j.id FROM job j
  WHERE j.state <> 'failed' AND ${dialect.inList('j.kind', '?1')} AND ${IS_FIRST}
    AND ((j.state = 'waiting' AND (j.next_at <= ?2 OR j.next_at > ?2 + ${LONGEST_DELAY_MS}))
      OR (j.state = 'leased' AND (j.lease_until <= ?2 OR j.lease_until > ?2 + ${LONGEST_LEASE_MS})))
  ORDER BY j.id LIMIT 1${dialect.skipLocked('j')}`

/** Leases the next due job to a worker; no two workers get the same one. */
export const leaseJob = async (
  context: StoreContext,
  owner: string,
  kinds: readonly JobKind[],
  leaseMs: number,
): Promise<Job | undefined> => {
  const { db, now } = context
  const due = await db.get<{ id: number }>(selectDue(db), kinds, now())
  if (!due) return undefined
  const sql = "UPDATE job SET state = 'leased', lease_owner = ?, lease_until = ?, attempts = attempts + 1 WHERE id = ?"
  await db.run(sql, owner, now() + Math.min(leaseMs, LONGEST_LEASE_MS), due.id)
  return readJob(context, due.id)
}

const IS_HELD = "id = ? AND state = 'leased' AND lease_owner = ?"

/** Extends a lease; false if it was lost. */
export const renewLease = async (
  { db, now }: StoreContext,
  { job, owner }: Lease,
  leaseMs: number,
): Promise<boolean> => {
  const until = now() + Math.min(leaseMs, LONGEST_LEASE_MS)
  return (await db.run(`UPDATE job SET lease_until = ? WHERE ${IS_HELD}`, until, job, owner)) > 0
}

/** Two jobs of one episode that end at once must see each other's end. */
const lockEpisodeOf = async ({ db }: StoreContext, job: number): Promise<number | undefined> => {
  const sql = `SELECT id FROM episode WHERE id = (SELECT episode_id FROM job WHERE id = ?)${db.dialect.forUpdate}`
  return (await db.get<{ id: number }>(sql, job))?.id
}

/** An episode is pending while a job is open, and failed if one has been given up. */
const updateState = async ({ db }: StoreContext, episode: number | undefined): Promise<void> => {
  if (episode === undefined) return
  await db.run(
    `UPDATE episode SET
      state = CASE WHEN EXISTS (SELECT 1 FROM job WHERE episode_id = ?1 AND state <> 'failed') THEN 'pending'
        WHEN EXISTS (SELECT 1 FROM job WHERE episode_id = ?1) THEN 'failed' ELSE 'ready' END,
      error = (SELECT error FROM job WHERE episode_id = ?1 AND state = 'failed' ORDER BY id LIMIT 1)
      WHERE id = ?1`,
    episode,
  )
}

/** Deletes a finished job; false if the lease was lost. */
export const finishJob = async (context: StoreContext, { job, owner }: Lease): Promise<boolean> => {
  const episode = await lockEpisodeOf(context, job)
  if ((await context.db.run(`DELETE FROM job WHERE ${IS_HELD}`, job, owner)) === 0) return false
  await updateState(context, episode)
  return true
}

/** Puts a failed job back until `retryAt`, or gives it up; false if the lease was lost. */
export const failJob = async (
  context: StoreContext,
  { job, owner }: Lease,
  error: string,
  retryAt?: Instant,
  counts = true,
): Promise<boolean> => {
  const episode = await lockEpisodeOf(context, job)
  const now = context.now()
  const changed = await context.db.run(
    `UPDATE job SET state = ?, next_at = ?, error = ?, attempts = attempts - ?, lease_owner = NULL, lease_until = NULL
      WHERE ${IS_HELD}`,
    retryAt === undefined ? 'failed' : 'waiting',
    // A longer delay would look like one of a clock that has been set back.
    Math.round(Math.min(retryAt ?? now, now + LONGEST_DELAY_MS)),
    error,
    counts ? 0 : 1,
    job,
    owner,
  )
  if (changed > 0) await updateState(context, episode)
  return changed > 0
}

/** Lets a job that was given up start again. */
export const retryJob = async (context: StoreContext, job: number): Promise<boolean> => {
  const episode = await lockEpisodeOf(context, job)
  const sql = "UPDATE job SET state = 'waiting', attempts = 0, next_at = ? WHERE id = ? AND state = 'failed'"
  const changed = await context.db.run(sql, context.now(), job)
  if (changed > 0) await updateState(context, episode)
  return changed > 0
}

/** Jobs, oldest first. */
export const listJobs = async ({ db }: StoreContext, query: JobQuery): Promise<Job[]> => {
  const scope = inGroups(db, 'j.group_id', query.groups)
  const sql = `${SELECT_JOBS} WHERE ${scope.sql} AND ${db.dialect.inList('j.state')} ORDER BY j.id LIMIT ?`
  const states = query.states ?? ['waiting', 'leased', 'failed']
  return (await db.all(sql, ...scope.values, states, query.limit)).map(jobOf)
}

/** When the next job of these kinds is due. */
export const readNextDue = async ({ db }: StoreContext, kinds: readonly JobKind[]): Promise<Instant | undefined> => {
  const sql = `SELECT min(CASE state WHEN 'waiting' THEN next_at ELSE lease_until END) AS at FROM job j
    WHERE state <> 'failed' AND ${db.dialect.inList('kind')} AND ${IS_FIRST}`
  return (await db.get<{ at: number | null }>(sql, kinds))?.at ?? undefined
}

/** Enqueues a job by itself. */
export const enqueueJob = async (context: StoreContext, group: string, job: NewJob, episode?: string): Promise<Job> => {
  if (isOfGroup(job.kind)) await lockGroups(context, [group]) // before the episode, as every writer does
  if (episode === undefined) return readJob(context, await addJob(context, group, job))
  const sql = `SELECT id FROM episode WHERE uuid = ? AND group_id = ?${context.db.dialect.forUpdate}`
  const row = await context.db.get<{ id: number }>(sql, episode, group)
  if (!row) throw new StoreError('missing', `There is no episode ${episode} in group ${group}.`)
  const id = await addJob(context, group, job, row.id)
  await updateState(context, row.id)
  return readJob(context, id)
}
