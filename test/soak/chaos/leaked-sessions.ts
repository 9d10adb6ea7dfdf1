import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultTime } from './faults.ts'
import type { OpenSession } from './servers/session-server.ts'

const POLL_MS = 250
const BATCH_MS = 300 // until a session is stored: one batch of 20 ms, on a busy machine
const HANDSHAKE_MS = 1_000 // until a gateway on a busy machine has read the answer to its handshake

/**
 * Whether a fault came before the gateway could store the session: it had the session's id for less than a batch, or not
 * yet. A busy server may answer a handshake only after the gateway that began it is gone.
 */
export const isCutByFault = ({ openedAt, knownAt, usedAt }: OpenSession, faults: readonly FaultTime[]): boolean =>
  faults.some(({ beganAt, endedAt }) => {
    if (usedAt > endedAt) return false // a later gateway has found it in the store
    if (knownAt === undefined) return openedAt > beganAt - HANDSHAKE_MS
    return knownAt > beganAt - BATCH_MS && openedAt <= beganAt
  })

/** Waits until every session is ended or in use by a gateway; answers which are neither. */
export const leakedSessions = async (
  openSessions: () => OpenSession[],
  faults: readonly FaultTime[],
  leaveMs: number,
): Promise<OpenSession[]> => {
  const last = faults.at(-1)?.beganAt ?? Number.POSITIVE_INFINITY
  const find = () => openSessions().filter(({ streams, usedAt }) => streams === 0 && usedAt < last)
  const deadline = Date.now() + leaveMs
  while (find().some(session => !isCutByFault(session, faults)) && Date.now() < deadline) await sleep(POLL_MS)
  return find()
}

/** When it was opened, known to the gateway and last used, from the latest fault before. */
export const describeLeak = ({ id, openedAt, knownAt, usedAt }: OpenSession, faults: readonly FaultTime[]): string => {
  const after = (time: number): string => {
    const fault = Math.max(...faults.map(({ beganAt }) => beganAt).filter(each => each <= time))
    return Number.isFinite(fault) ? `${((time - fault) / 1000).toFixed(2)} s after a fault` : 'before the first fault'
  }
  const known = knownAt === undefined ? 'never used' : `first used ${after(knownAt)}, last used ${after(usedAt)}`
  return `session leaked at a server: ${id}, opened ${after(openedAt)}, ${known}`
}
