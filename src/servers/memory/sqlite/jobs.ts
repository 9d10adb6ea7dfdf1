import { isOfGroup } from '../group-jobs.ts'
import type { Instant, Job, JobKind, NewJob } from '../model.ts'
import { type JobQuery, type Lease, StoreError } from '../store.ts'
import type { Context } from './context.ts'
import { inGroups, JOBS, jobOf } from './rows.ts'

// A lease or a pause further ahead than this was written by a clock that has since been set back.
const LONGEST_LEASE = 15 * 60_000
const LONGEST_PAUSE = 24 * 60 * 60_000

/** The same work about a group that waits already; one that runs may have looked before what asks now. */
const findWaiting = ({ db }: Context, group: string, kind: JobKind, payload: string): number | undefined =>
  isOfGroup(kind)
    ? db.get<{ id: number }>(
        "SELECT id FROM job WHERE kind = ? AND group_id = ? AND payload = ? AND state = 'waiting'",
        kind,
        group,
        payload,
      )?.id
    : undefined

/** Puts work on the list; the caller holds the transaction. */
export const addJob = (context: Context, group: string, job: NewJob, episode?: number): number => {
  const { db, now } = context
  const payload = JSON.stringify(job.payload ?? {})
  const waiting = findWaiting(context, group, job.kind, payload)
  if (waiting !== undefined) return waiting
  return db.run(
    `INSERT INTO job (group_id, episode_id, kind, state, next_at, payload, created_at)
      VALUES (?, ?, ?, 'waiting', ?, ?, ?)`,
    group,
    isOfGroup(job.kind) ? null : (episode ?? null),
    job.kind,
    job.notBefore ?? now(),
    payload,
    now(),
  ).id
}

/** One job by its id, which must be there. */
const readJob = ({ db }: Context, id: number): Job => {
  const row = db.get(`${JOBS} WHERE j.id = ?`, id)
  if (!row) throw new StoreError('missing', `There is no job ${id}.`)
  return jobOf(row)
}

// The first unfinished job of its kind in its group, and nobody holds it: that is what keeps a group in order.
const DUE = `SELECT j.id FROM job j
  WHERE j.state <> 'failed' AND j.kind IN (SELECT value FROM json_each(?1))
    AND j.id = (SELECT min(o.id) FROM job o WHERE o.kind = j.kind AND o.group_id = j.group_id AND o.state <> 'failed')
    AND ((j.state = 'waiting' AND (j.next_at <= ?2 OR j.next_at > ?2 + ${LONGEST_PAUSE}))
      OR (j.state = 'leased' AND (j.lease_until <= ?2 OR j.lease_until > ?2 + ${LONGEST_LEASE})))
  ORDER BY j.id LIMIT 1`

/** Hands the next due job to a worker; the caller holds the transaction, so two workers never get the same. */
export const leaseJob = (
  context: Context,
  owner: string,
  kinds: readonly JobKind[],
  leaseMs: number,
): Job | undefined => {
  const { db, now } = context
  const due = db.get<{ id: number }>(DUE, JSON.stringify(kinds), now())
  if (!due) return undefined
  db.run(
    "UPDATE job SET state = 'leased', lease_owner = ?, lease_until = ?, attempts = attempts + 1 WHERE id = ?",
    owner,
    now() + Math.min(leaseMs, LONGEST_LEASE),
    due.id,
  )
  return readJob(context, due.id)
}

const isHeld = ({ db }: Context, { job, owner }: Lease): boolean =>
  db.get("SELECT 1 FROM job WHERE id = ? AND state = 'leased' AND lease_owner = ?", job, owner) !== undefined

/** Keeps a job longer; false when it is no longer the owner's. */
export const renewLease = (context: Context, lease: Lease, leaseMs: number): boolean => {
  if (!isHeld(context, lease)) return false
  const until = context.now() + Math.min(leaseMs, LONGEST_LEASE)
  return context.db.run('UPDATE job SET lease_until = ? WHERE id = ?', until, lease.job).changes > 0
}

/** An episode is pending while work waits for it, and failed when some was given up. */
const settleEpisode = ({ db }: Context, episode: number | null): void => {
  if (episode === null) return
  db.run(
    `UPDATE episode SET
      state = CASE WHEN EXISTS (SELECT 1 FROM job WHERE episode_id = ?1 AND state <> 'failed') THEN 'pending'
        WHEN EXISTS (SELECT 1 FROM job WHERE episode_id = ?1) THEN 'failed' ELSE 'ready' END,
      error = (SELECT error FROM job WHERE episode_id = ?1 AND state = 'failed' ORDER BY id LIMIT 1)
      WHERE id = ?1`,
    episode,
  )
}

const episodeIdOf = ({ db }: Context, job: number): number | null =>
  db.get<{ episode_id: number | null }>('SELECT episode_id FROM job WHERE id = ?', job)?.episode_id ?? null

/** Takes a finished job off the list; false when the lease was lost. */
export const closeJob = (context: Context, lease: Lease): boolean => {
  if (!isHeld(context, lease)) return false
  const episode = episodeIdOf(context, lease.job)
  context.db.run('DELETE FROM job WHERE id = ?', lease.job)
  settleEpisode(context, episode)
  return true
}

/** Puts a failed job back until its time, or gives it up; false when the lease was lost. */
export const failJob = (context: Context, lease: Lease, error: string, retryAt?: Instant, counts = true): boolean => {
  if (!isHeld(context, lease)) return false
  context.db.run(
    `UPDATE job SET state = ?, next_at = ?, error = ?, attempts = attempts - ?, lease_owner = NULL, lease_until = NULL
      WHERE id = ?`,
    retryAt === undefined ? 'failed' : 'waiting',
    // What waits longer looks again meanwhile, or it would be taken for the work of a clock set back.
    Math.round(Math.min(retryAt ?? context.now(), context.now() + LONGEST_PAUSE)),
    error,
    counts ? 0 : 1,
    lease.job,
  )
  settleEpisode(context, episodeIdOf(context, lease.job))
  return true
}

/** Lets a job that was given up try again from the start. */
export const retryJob = (context: Context, job: number): boolean => {
  const { changes } = context.db.run(
    "UPDATE job SET state = 'waiting', attempts = 0, next_at = ? WHERE id = ? AND state = 'failed'",
    context.now(),
    job,
  )
  if (changes > 0) settleEpisode(context, episodeIdOf(context, job))
  return changes > 0
}

/** Jobs, oldest first. */
export const listJobs = ({ db }: Context, query: JobQuery): Job[] => {
  const scope = inGroups('j.group_id', query.groups)
  const states = JSON.stringify(query.states ?? ['waiting', 'leased', 'failed'])
  const sql = `${JOBS} WHERE ${scope.sql} AND j.state IN (SELECT value FROM json_each(?)) ORDER BY j.id LIMIT ?`
  return db.all(sql, ...scope.values, states, query.limit).map(jobOf)
}

/** When somebody should look for work again. */
export const nextDue = ({ db }: Context, kinds: readonly JobKind[]): Instant | undefined =>
  db.get<{ at: number | null }>(
    // One behind another is not due before that is done, however long it has waited.
    `SELECT min(CASE state WHEN 'waiting' THEN next_at ELSE lease_until END) AS at FROM job j
      WHERE state <> 'failed' AND kind IN (SELECT value FROM json_each(?))
        AND id = (SELECT min(o.id) FROM job o WHERE o.kind = j.kind AND o.group_id = j.group_id AND o.state <> 'failed')`,
    JSON.stringify(kinds),
  )?.at ?? undefined

/** Puts work on the list on its own. */
export const enqueueJob = (context: Context, group: string, job: NewJob, episode?: string): Job => {
  if (episode === undefined) return readJob(context, addJob(context, group, job))
  const row = context.db.get<{ id: number }>('SELECT id FROM episode WHERE uuid = ? AND group_id = ?', episode, group)
  if (!row) throw new StoreError('missing', `There is no episode ${episode} in group ${group}.`)
  const id = addJob(context, group, job, row.id)
  settleEpisode(context, row.id)
  return readJob(context, id)
}
