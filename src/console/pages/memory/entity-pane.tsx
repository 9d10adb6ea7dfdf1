import { useState } from 'preact/hooks'
import type { EntityDetails, EpisodeView } from '../../../protocol/memory-views.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { formatCount, plural } from '../../parts/format.ts'
import { JsonTree } from '../../parts/json-tree.tsx'
import { Time } from '../../parts/quantities.tsx'
import { isOwner } from '../../session.ts'
import { EditEntity } from './edit-entity.tsx'
import { FactChart } from './fact-chart.tsx'
import { ForgetDialog } from './forget-dialog.tsx'
import { type MemoryPlace, memoryHref, memoryQuery } from './memory-address.ts'
import { useMemoryData } from './memory-client.ts'
import { dayText } from './memory-dates.ts'
import { MemoryFailure, MemoryLoading } from './memory-states.tsx'

/** One entity: what is known of it, what was true when, what it is connected with. */
export const EntityPane = ({ place }: { readonly place: MemoryPlace }) => {
  const id = place.id ?? ''
  const path = `admin/memory/entities/${encodeURIComponent(id)}${memoryQuery({ ...place, group: undefined })}`
  const { data, error } = useMemoryData<EntityDetails>(path)
  const [asked, setAsked] = useState<'edit' | 'forget' | undefined>()
  if (error !== undefined) return <MemoryFailure message={error} />
  if (!data) return <MemoryLoading />
  const { entity, facts } = data
  const onlyOwner = isOwner.value ? undefined : 'Only the owner may change the memory'
  return (
    <article class="memory-page">
      <header class="memory-head">
        <h2>{entity.name}</h2>
        {entity.labels.map(label => (
          <Badge key={label} kind="accent">
            {label}
          </Badge>
        ))}
        <Badge>{entity.group}</Badge>
        <span class="memory-actions">
          <Button icon="edit" disabled={!isOwner.value} title={onlyOwner} onClick={() => setAsked('edit')}>
            Edit
          </Button>
          <Button
            icon="trash"
            kind="danger"
            disabled={!isOwner.value}
            title={onlyOwner}
            onClick={() => setAsked('forget')}
          >
            Forget…
          </Button>
        </span>
      </header>
      <p class="quiet">
        {plural(entity.facts, 'fact')} · {plural(data.mentions, 'episode')} · first stored <Time at={data.learntAt} />
        {data.aliases.length > 0 && ` · also ${data.aliases.join(', ')}`}
      </p>
      {entity.summary !== '' && <p class="memory-summary">{entity.summary}</p>}
      <h3>
        Facts over time{place.asOf !== undefined && `: what was true on ${place.asOf}`}
        {facts.length < entity.facts && place.asOf === undefined && ` (the latest ${formatCount(facts.length)})`}
      </h3>
      {facts.length === 0 ? (
        <p class="quiet">{place.asOf === undefined ? 'None.' : 'None was true then.'}</p>
      ) : (
        <FactChart facts={facts} place={place} entity={id} />
      )}
      <div class="memory-columns">
        <Neighbourhood {...data} place={place} />
        <Mentions episodes={data.episodes} total={data.mentions} place={place} />
      </div>
      {Object.keys(data.attributes).length > 0 && (
        <>
          <h3>Attributes</h3>
          <JsonTree value={data.attributes} />
        </>
      )}
      {asked === 'edit' && <EditEntity details={data} place={place} onClose={() => setAsked(undefined)} />}
      {asked === 'forget' && (
        <ForgetDialog
          place={place}
          preset={{ kind: 'entity', id, name: entity.name }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </article>
  )
}

const Neighbourhood = ({ neighbours, place }: Pick<EntityDetails, 'neighbours'> & { readonly place: MemoryPlace }) => (
  <section aria-label="Connected entities">
    <h3>Connected with</h3>
    <ul class="memory-chips">
      {neighbours.map(({ id, name, facts }) => (
        <li key={id}>
          <a href={memoryHref({ ...place, view: 'entity', id })} title={plural(facts, 'fact')}>
            {name} {facts > 1 && <span class="quiet">{formatCount(facts)}</span>}
          </a>
        </li>
      ))}
      {neighbours.length === 0 && <li class="quiet">Nothing yet.</li>}
    </ul>
  </section>
)

interface MentionsProps {
  readonly episodes: readonly EpisodeView[]
  readonly total: number
  readonly place: MemoryPlace
}

const Mentions = ({ episodes, total, place }: MentionsProps) => (
  <section aria-label="Episodes that mention it">
    <h3>
      Episodes{episodes.length < total && ` (the latest ${formatCount(episodes.length)} of ${formatCount(total)})`}
    </h3>
    <ul class="memory-episodes">
      {episodes.map(({ id, name, at }) => (
        <li key={id}>
          <span class="quiet">{dayText(at)}</span>
          <a class="truncate" href={memoryHref({ ...place, view: 'episode', id })}>
            {name}
          </a>
        </li>
      ))}
      {episodes.length === 0 && <li class="quiet">No episode mentions it.</li>}
    </ul>
  </section>
)
