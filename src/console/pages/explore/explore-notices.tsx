import { Icon } from '../../parts/icon.tsx'
import { hrefTo } from '../../router.ts'
import { calls } from './calls.ts'
import { connection } from './connection.ts'
import { targets } from './targets.ts'

/** What the user must know wherever they look: questions that wait, and a target that does not answer. */
export const ExploreNotices = ({
  target,
  shownCall,
}: {
  readonly target: string
  readonly shownCall: number | undefined
}) => {
  const waiting = calls.value.filter(({ id, state }) => id !== shownCall && state.value.questions.length > 0)
  const known = targets.value?.find(({ name }) => name === target)
  const isGone = targets.value !== undefined && !known
  const { state, error } = connection.value ?? {}
  const problem = isGone
    ? `The gateway no longer has a target “${target}”. What you entered is kept; choose another target to go on.`
    : known?.problem !== undefined
      ? `${target} is ${known.problem}. What you entered is kept.`
      : state === 'failed'
        ? `Not connected to ${target}: ${error}`
        : undefined
  return (
    <>
      {problem !== undefined && (
        <p class="explore-notice notice-problem" role="alert">
          <Icon name="warning" />
          {problem}
        </p>
      )}
      {waiting.map(record => (
        <p key={record.id} class="explore-notice" role="status">
          <Icon name="info" />
          {record.kind === 'outside' ? record.target : record.subject} asks you something.
          <a href={hrefTo('explore', [record.target, 'calls', String(record.id)])}>Answer</a>
        </p>
      ))}
    </>
  )
}
