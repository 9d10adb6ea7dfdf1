import type { AffectedWorkspace, ConfigChange, ConfigPlan } from '../../../admin/api/config.ts'
import { Badge } from '../../parts/badge.tsx'
import { plural } from '../../parts/format.ts'

const SIGNS = { added: '+', removed: '−', changed: '~' } as const
const GROUPS = [
  ['servers', 'server'],
  ['workspaces', 'workspace'],
  ['policies', 'policy'],
  ['settings', ''],
] as const

/** How many things a plan changes. */
export const planSize = (plan: ConfigPlan): number => GROUPS.reduce((sum, [group]) => sum + plan[group].length, 0)

interface PlanListProps {
  readonly plan: ConfigPlan
  readonly affected?: readonly AffectedWorkspace[]
}

/** What a configuration changes, as `dragoman plan` says it, and what that means for sessions. */
export const PlanList = ({ plan, affected = [] }: PlanListProps) => {
  const open = affected.filter(({ sessions }) => sessions > 0)
  const ending = open.filter(({ effect }) => effect === 'ends')
  const told = open.filter(({ effect }) => effect === 'lists_change')
  if (planSize(plan) === 0) return <p class="quiet">The gateway behaves as before: only the text changes.</p>
  return (
    <>
      <ul class="config-plan">
        {GROUPS.flatMap(([group, noun]) =>
          plan[group].map(change => (
            <PlanRow key={`${group} ${change.name}`} change={change} noun={noun} needsRestart={group === 'settings'} />
          )),
        )}
      </ul>
      <p class="quiet">
        {open.length === 0 && 'No open session is affected. '}
        {told.map(
          ({ name, sessions }) => `${plural(sessions, 'session')} of “${name}” will be told that lists have changed. `,
        )}
        {ending.map(
          ({ name, sessions }) => `${plural(sessions, 'session')} of “${name}” will end with the last call. `,
        )}
      </p>
    </>
  )
}

/** How the gateway reaches a server, which entries say by what they have. */
const SERVER_KINDS: Readonly<Record<string, string>> = {
  process: 'stdio',
  remote: 'HTTP',
  builtin: 'the gateway itself',
  openapi: 'OpenAPI',
}

const detailText = ({ at, from, to }: ConfigChange['details'][number]): string => {
  if (at === 'kind') {
    const [before, after] = [from, to].map(kind => kind && (SERVER_KINDS[kind] ?? kind))
    return before === undefined ? `over ${after ?? 'nothing'}` : `over ${after ?? 'nothing'} instead of ${before}`
  }
  if (from === undefined) return to === undefined ? `${at} differs` : `${at}: ${to}`
  return `${at}: ${from} → ${to ?? 'absent'}`
}

interface PlanRowProps {
  readonly change: ConfigChange
  readonly noun: string
  readonly needsRestart: boolean
}

const PlanRow = ({ change: { name, kind, details }, noun, needsRestart }: PlanRowProps) => (
  <li class={`config-plan-${kind}`}>
    <span class="config-plan-sign" aria-hidden="true">
      {SIGNS[kind]}
    </span>
    <span>
      <span class="visually-hidden">{kind} </span>
      {noun} <strong>{name}</strong> {needsRestart && <Badge kind="warn">needs a restart</Badge>}
      {details.map(detail => (
        <span key={detail.at} class="config-plan-detail mono">
          {detailText(detail)}
        </span>
      ))}
    </span>
  </li>
)
