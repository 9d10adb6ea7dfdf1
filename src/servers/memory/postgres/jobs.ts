import { isOfGroup } from '../group-jobs.ts'
import type { Instant, Job, JobKind, NewJob } from '../model.ts'
import { jobOf } from '../sqlite/rows.ts'
import { type JobQuery, type Lease, StoreError } from '../store.ts'
import { type Context, holdGroups } from './context.ts'
import { idIn, inGroups, JOBS } from './rows.ts'

// A lease or a pause further ahead than this was written by a clock that has since been set back.
const LONGEST_LEASE = 15 * 60_000
const LONGEST_PAUSE = 24 * 60 * 60_000

// Nobody can take it until we are done; one that is being taken at this moment is waited for, and then waits no more.
const WAITING = `SELECT id FROM job WHERE kind = ? AND group_id = ? AND payload = ? AND state = 'waiting'
  ORDER BY id LIMIT 1 FOR UPDATE`

/** The same work about a group that waits already; one that runs may have looked before what asks now. */
const findWaiting = async (context: Context, group: string, kind: JobKind, payload: string) => {
  if (!isOfGroup(kind)) return undefined
  await holdGroups(context, [group])
  return (await context.db.get<{ id: number }>(WAITING, kind, group, payload))?.id
}

/** Puts work on the list. */
export const addJob = async (context: Context, group: string, job: NewJob, episode?: number): Promise<number> => {
  const { db, now } = context
  const payload = JSON.stringify(job.payload ?? {})
  const waiting = await findWaiting(context, group, job.kind, payload)
  if (waiting !== undefined) return waiting
  return idIn(
    await db.get<{ id: number }>(
      `INSERT INTO job (group_id, episode_id, kind, state, next_at, payload, created_at)
        VALUES (?, ?, ?, 'waiting', ?, ?, ?) RETURNING id`,
      group,
      isOfGroup(job.kind) ? null : (episode ?? null),
      job.kind,
      job.notBefore ?? now(),
      payload,
      now(),
    ),
  )
}

const readJob = async ({ db }: Context, id: number): Promise<Job> => {
  const row = await db.get(`${JOBS} WHERE j.id = ?`, id)
  if (!row) throw new StoreError('missing', `There is no job ${id}.`)
  return jobOf(row)
}

// The first unfinished job of its kind in its group, and nobody holds it: that is what keeps a group in order. A row
// that another node is taking at this moment is passed over, and is still the first of its group to us.
const DUE = `SELECT j.id FROM job j
  WHERE j.state <> 'failed' AND j.kind = ANY (?1)
    AND j.id = (SELECT min(o.id) FROM job o WHERE o.kind = j.kind AND o.group_id = j.group_id AND o.state <> 'failed')
    AND ((j.state = 'waiting' AND (j.next_at <= ?2 OR j.next_at > ?2 + ${LONGEST_PAUSE}))
      OR (j.state = 'leased' AND (j.lease_until <= ?2 OR j.lease_until > ?2 + ${LONGEST_LEASE})))
  ORDER BY j.id LIMIT 1 FOR UPDATE OF j SKIP LOCKED`

/** Hands the next due job to a worker; two workers never get the same. */
export const leaseJob = async (
  context: Context,
  owner: string,
  kinds: readonly JobKind[],
  leaseMs: number,
): Promise<Job | undefined> => {
  const { db, now } = context
  const due = await db.get<{ id: number }>(DUE, kinds, now())
  if (!due) return undefined
  await db.run(
    "UPDATE job SET state = 'leased', lease_owner = ?, lease_until = ?, attempts = attempts + 1 WHERE id = ?",
    owner,
    now() + Math.min(leaseMs, LONGEST_LEASE),
    due.id,
  )
  return readJob(context, due.id)
}

const HELD = "id = ? AND state = 'leased' AND lease_owner = ?"

/** Keeps a job longer; false when it is no longer the owner's. */
export const renewLease = async ({ db, now }: Context, { job, owner }: Lease, leaseMs: number): Promise<boolean> =>
  (await db.run(`UPDATE job SET lease_until = ? WHERE ${HELD}`, now() + Math.min(leaseMs, LONGEST_LEASE), job, owner)) >
  0

/** Two jobs of one episode that end at once must see each other's end. */
const holdEpisodeOf = async ({ db }: Context, job: number): Promise<number | undefined> => {
  const sql = 'SELECT id FROM episode WHERE id = (SELECT episode_id FROM job WHERE id = ?) FOR UPDATE'
  return (await db.get<{ id: number }>(sql, job))?.id
}

/** An episode is pending while work waits for it, and failed when some was given up. */
const settleEpisode = async ({ db }: Context, episode: number | undefined): Promise<void> => {
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

/** Takes a finished job off the list; false when the lease was lost. */
export const closeJob = async (context: Context, { job, owner }: Lease): Promise<boolean> => {
  const episode = await holdEpisodeOf(context, job)
  if ((await context.db.run(`DELETE FROM job WHERE ${HELD}`, job, owner)) === 0) return false
  await settleEpisode(context, episode)
  return true
}

/** Puts a failed job back until its time, or gives it up; false when the lease was lost. */
export const failJob = async (
  context: Context,
  { job, owner }: Lease,
  error: string,
  retryAt?: Instant,
  counts = true,
): Promise<boolean> => {
  const episode = await holdEpisodeOf(context, job)
  const changed = await context.db.run(
    `UPDATE job SET state = ?, next_at = ?, error = ?, attempts = attempts - ?, lease_owner = NULL, lease_until = NULL
      WHERE ${HELD}`,
    retryAt === undefined ? 'failed' : 'waiting',
    // What waits longer looks again meanwhile, or it would be taken for the work of a clock set back.
    Math.round(Math.min(retryAt ?? context.now(), context.now() + LONGEST_PAUSE)),
    error,
    counts ? 0 : 1,
    job,
    owner,
  )
  if (changed > 0) await settleEpisode(context, episode)
  return changed > 0
}

/** Lets a job that was given up try again from the start. */
export const retryJob = async (context: Context, job: number): Promise<boolean> => {
  const episode = await holdEpisodeOf(context, job)
  const changed = await context.db.run(
    "UPDATE job SET state = 'waiting', attempts = 0, next_at = ? WHERE id = ? AND state = 'failed'",
    context.now(),
    job,
  )
  if (changed > 0) await settleEpisode(context, episode)
  return changed > 0
}

/** Jobs, oldest first. */
export const listJobs = async ({ db }: Context, query: JobQuery): Promise<Job[]> => {
  const scope = inGroups('j.group_id', query.groups)
  const sql = `${JOBS} WHERE ${scope.sql} AND j.state = ANY (?) ORDER BY j.id LIMIT ?`
  const states = query.states ?? ['waiting', 'leased', 'failed']
  return (await db.all(sql, ...scope.values, states, query.limit)).map(jobOf)
}

/** When somebody should look for work again. */
export const nextDue = async ({ db }: Context, kinds: readonly JobKind[]): Promise<Instant | undefined> => {
  const row = await db.get<{ at: number | null }>(
    // One behind another is not due before that is done, however long it has waited.
    `SELECT min(CASE state WHEN 'waiting' THEN next_at ELSE lease_until END) AS at FROM job j
      WHERE state <> 'failed' AND kind = ANY (?)
        AND id = (SELECT min(o.id) FROM job o WHERE o.kind = j.kind AND o.group_id = j.group_id AND o.state <> 'failed')`,
    kinds,
  )
  return row?.at ?? undefined
}

/** Puts work on the list on its own. */
export const enqueueJob = async (context: Context, group: string, job: NewJob, episode?: string): Promise<Job> => {
  if (isOfGroup(job.kind)) await holdGroups(context, [group]) // before the episode, as everybody does
  if (episode === undefined) return readJob(context, await addJob(context, group, job))
  const sql = 'SELECT id FROM episode WHERE uuid = ? AND group_id = ? FOR UPDATE'
  const row = await context.db.get<{ id: number }>(sql, episode, group)
  if (!row) throw new StoreError('missing', `There is no episode ${episode} in group ${group}.`)
  const id = await addJob(context, group, job, row.id)
  await settleEpisode(context, row.id)
  return readJob(context, id)
}
