import { useMemo, useState } from 'preact/hooks'
import type { EntityName, FactView } from '../../../protocol/memory-views.ts'
import { Menu } from '../../parts/menu.tsx'
import { isOwner } from '../../session.ts'
import { DeleteFact, EditFact, EndFact } from './fact-dialogs.tsx'
import { repeatsText } from './highlight.ts'
import { type MemoryPlace, memoryHref } from './memory-address.ts'
import { isPast, spanText } from './memory-dates.ts'
import { type ValidityScale, validityBar, validityScale } from './validity.ts'

export interface FactChartProps {
  readonly facts: readonly FactView[]
  readonly place: MemoryPlace
  readonly entity?: string | undefined // on whose page they are: it is not linked again
}

type Asked = { readonly what: 'edit' | 'end' | 'delete'; readonly fact: FactView }

/** Facts with the time in which they were true: past ones are visible, but quiet. */
export const FactChart = ({ facts, place, entity }: FactChartProps) => {
  const [asked, setAsked] = useState<Asked | undefined>()
  const now = Date.now()
  const scale = useMemo(() => validityScale(facts, now), [facts])
  const close = (): void => setAsked(undefined)
  return (
    <div class="validity">
      <div class="validity-axis" aria-hidden="true">
        <span />
        <span class="validity-lane">
          {scale.ticks.map(({ label, left }) => (
            <span key={label} class="validity-tick" style={{ left: `${left}%` }}>
              {label}
            </span>
          ))}
        </span>
        <span />
      </div>
      <ul>
        {facts.map(fact => (
          <FactRow key={fact.id} {...{ fact, scale, now, place, entity }} onAsk={what => setAsked({ what, fact })} />
        ))}
      </ul>
      {asked?.what === 'edit' && <EditFact fact={asked.fact} place={place} onClose={close} />}
      {asked?.what === 'end' && <EndFact fact={asked.fact} place={place} onClose={close} />}
      {asked?.what === 'delete' && <DeleteFact fact={asked.fact} place={place} onClose={close} />}
    </div>
  )
}

interface FactRowProps extends Omit<FactChartProps, 'facts'> {
  readonly fact: FactView
  readonly scale: ValidityScale
  readonly now: number
  readonly onAsk: (what: Asked['what']) => void
}

const ORIGINS = {
  agent: 'stated by an agent',
  llm: 'read by a model',
  rule: 'read by a rule',
  triplet: 'stated as a triplet',
}

const FactRow = ({ fact, scale, now, place, entity, onAsk }: FactRowProps) => {
  const isOld = isPast(fact, now)
  const ends = [fact.source, fact.target].filter(({ id }) => id !== entity)
  const items = [
    { label: 'Correct…', icon: 'edit', disabled: !isOwner.value, onSelect: () => onAsk('edit') },
    { label: 'End…', icon: 'clock', disabled: !isOwner.value, onSelect: () => onAsk('end') },
    { label: 'Delete…', icon: 'trash', isDanger: true, disabled: !isOwner.value, onSelect: () => onAsk('delete') },
  ] as const
  return (
    <li class={isOld ? 'validity-row validity-past' : 'validity-row'}>
      <div class="validity-fact">
        <p class="memory-text">{fact.text}</p>
        <p class="memory-meta">
          <span>{spanText(fact)}</span>
          <span title={`${ORIGINS[fact.origin]}, confidence ${Math.round(fact.confidence * 100)} %`}>
            {fact.relation}
          </span>
          {fact.supersededBy !== undefined && <span>superseded</span>}
          {ends.map(end => (
            <EntityLink key={end.id} entity={end} place={place} />
          ))}
          {fact.episodes.slice(0, 1).map(({ id, name }) => (
            <a key={id} class="truncate quiet-link" href={memoryHref({ ...place, view: 'episode', id })} title={name}>
              {repeatsText(name, fact.text) ? 'episode' : `“${name}”`}
            </a>
          ))}
        </p>
      </div>
      <ValidityLane fact={fact} scale={scale} now={now} />
      <Menu label={`Actions for “${fact.text.slice(0, 60)}”`} items={items} />
    </li>
  )
}

const EntityLink = ({ entity, place }: { readonly entity: EntityName; readonly place: MemoryPlace }) => (
  <a href={memoryHref({ ...place, view: 'entity', id: entity.id })}>{entity.name}</a>
)

interface LaneProps {
  readonly fact: FactView
  readonly scale: ValidityScale
  readonly now: number
}

const ValidityLane = ({ fact, scale, now }: LaneProps) => {
  const bar = validityBar(fact, scale, now)
  const opened = `${bar.opensLeft ? ' validity-opens-left' : ''}${bar.opensRight ? ' validity-opens-right' : ''}`
  const today = ((now - scale.from) / (scale.to - scale.from)) * 100
  return (
    <span class="validity-lane" role="img" aria-label={`True ${spanText(fact)}`} title={spanText(fact)}>
      {scale.ticks.map(({ left }) => (
        <span key={left} class="validity-line" style={{ left: `${left}%` }} />
      ))}
      <span class="validity-now" style={{ left: `${today}%` }} />
      <span class={`validity-bar${opened}`} style={{ left: `${bar.left}%`, width: `${bar.width}%` }} />
    </span>
  )
}
