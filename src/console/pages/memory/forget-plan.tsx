import type { ForgetPlan, ForgetResult } from '../../../protocol/memory-views.ts'
import { plural } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'

const KINDS = [
  ['episodes', 'episode', 'episodes', ''],
  ['entities', 'entity', 'entities', 'nothing else mentions them'],
  ['facts', 'fact', 'facts', 'nothing else states them'],
] as const
const MOST_SHOWN = 100 // of each list

export const isEmptyPlan = (plan: ForgetPlan): boolean => KINDS.every(([key]) => plan[key].length === 0)

/** What would be erased: what was named, and what goes with it. */
export const ForgetPlanView = ({ plan }: { readonly plan: ForgetPlan }) => {
  if (isEmptyPlan(plan)) return <p role="status">Nothing in this memory matches. There is nothing to forget.</p>
  const counts = KINDS.map(([key, one, many]) => plural(plan[key].length, one, many)).join(', ')
  return (
    <div class="forget-plan" role="status">
      <p>
        <strong>This erases {counts}.</strong> It cannot be undone.
      </p>
      {KINDS.map(([key, , many, why]) => (
        <div key={key}>
          <PlanList title={many} rows={plan[key].filter(({ isNamed }) => isNamed)} />
          <PlanList
            title={`${many} that go with them, because ${why}`}
            rows={plan[key].filter(({ isNamed }) => !isNamed)}
          />
        </div>
      ))}
    </div>
  )
}

const PlanList = ({ title, rows }: { readonly title: string; readonly rows: ForgetPlan['facts'] }) =>
  rows.length === 0 ? null : (
    <details open={rows.length <= 8}>
      <summary>
        {title} <span class="tab-count">{rows.length}</span>
      </summary>
      <ul>
        {rows.slice(0, MOST_SHOWN).map(({ id, text }) => (
          <li key={id}>{text}</li>
        ))}
        {rows.length > MOST_SHOWN && <li class="quiet">and {rows.length - MOST_SHOWN} more</li>}
      </ul>
    </details>
  )

/** The proof: what is left of the erased texts. */
export const ForgetResultView = ({ result }: { readonly result: ForgetResult }) => {
  const { episodes, entities, facts, checked, gone, isClean, places } = result
  const isGone = gone === checked
  return (
    <div class="forget-result" role="status">
      <p>
        <Icon name={isGone ? 'check' : 'warning'} /> Erased {plural(episodes, 'episode')},{' '}
        {plural(entities, 'entity', 'entities')} and {plural(facts, 'fact')}.
      </p>
      <p>
        {isGone
          ? `None of ${plural(checked, 'piece')} of their text is left in ${isClean ? 'the files' : 'the tables; the logs, backups and replicas of the database are not searched'}.`
          : `${checked - gone} of ${plural(checked, 'piece')} of their text are still there. Close other programs that use this memory, and forget again.`}
      </p>
      <details>
        <summary>Where it was searched</summary>
        <ul class="mono">
          {places.map(place => (
            <li key={place}>{place}</li>
          ))}
        </ul>
      </details>
    </div>
  )
}
