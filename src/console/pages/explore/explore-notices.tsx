import type { ServerQuestion } from '../../mcp/mcp-client.ts'
import { Button } from '../../parts/button.tsx'
import { plural } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { Time } from '../../parts/quantities.tsx'
import { hrefTo } from '../../router.ts'
import { type CallRecord, calls, dismissQuestion } from './calls.ts'
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
      {waiting.length > 0 && <WaitingQuestions records={waiting} />}
    </>
  )
}

/** The questions of calls that are not shown: their height is bounded, and each can be dismissed. */
const WaitingQuestions = ({ records }: { readonly records: readonly CallRecord[] }) => {
  const all = records.flatMap(record => record.state.value.questions.map(open => ({ record, open })))
  const dismissAll = (): void => {
    for (const { open } of all) dismissQuestion(open)
  }
  return (
    <section class="waiting" aria-label="Questions that wait for you">
      {all.length > 1 && (
        <header class="waiting-row">
          <span class="waiting-text" role="status">
            {plural(all.length, 'question')} wait for you.
          </span>
          <Button kind="quiet" onClick={dismissAll}>
            Dismiss all
          </Button>
        </header>
      )}
      <ul>
        {all.map(({ record, open }) => (
          <li key={open.id} class="waiting-row">
            <Icon name="info" />
            <span class="waiting-text">
              <span class="mono">{record.kind === 'outside' ? record.target : record.subject}</span>{' '}
              {record.kind !== 'outside' && <span class="quiet">of {record.target}</span>} asks you:{' '}
              {summaryOf(open.question)} <span class="quiet">·</span> <Time at={open.askedAt} />
            </span>
            <a href={hrefTo('explore', [record.target, 'calls', String(record.id)])}>Answer</a>
            <Button
              kind="quiet"
              title={open.question.method === 'elicitation/create' ? 'Cancels the question' : 'Cancels the call'}
              onClick={() => dismissQuestion(open)}
            >
              Dismiss
            </Button>
          </li>
        ))}
      </ul>
    </section>
  )
}

const LONGEST = 120

const summaryOf = ({ method, params }: ServerQuestion): string => {
  if (method === 'roots/list') return 'for the roots of this client'
  if (method === 'sampling/createMessage') return 'for an answer of a model'
  const text = typeof params.message === 'string' ? params.message : ''
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}
