import type { CallHistoryRows } from './call-history.ts'
import type { CallActivity } from './server-calls.ts'

/** The calls of one server in several processes. */
export const mergeActivities = (all: readonly CallActivity[]): CallActivity | undefined => {
  const [first, ...others] = all
  return first && others.reduce(mergeTwo, first)
}

const mergeTwo = (one: CallActivity, other: CallActivity): CallActivity => {
  const errors = [one.lastError, other.lastError].flatMap(error => error ?? [])
  return {
    calls: one.calls + other.calls,
    errors: one.errors + other.errors,
    lastError: errors.sort((a, b) => b.at - a.at)[0],
    history: one.history && other.history ? mergeHistories(one.history, other.history) : (one.history ?? other.history),
  }
}

/** Both end now: their last places are the same ten seconds. */
const mergeHistories = (one: CallHistoryRows, other: CallHistoryRows): CallHistoryRows => {
  const calls = one.calls.map((count, at) => count + (other.calls[at] ?? 0))
  const sumOf = ({ calls, ms }: CallHistoryRows, at: number): number => (calls[at] ?? 0) * (ms[at] ?? 0)
  return {
    calls,
    errors: one.errors.map((count, at) => count + (other.errors[at] ?? 0)),
    ms: calls.map((count, at) => (count === 0 ? null : (sumOf(one, at) + sumOf(other, at)) / count)),
  }
}
