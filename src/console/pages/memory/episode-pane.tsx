import { useState } from 'preact/hooks'
import type { EpisodeDetails } from '../../../protocol/memory-views.ts'
import { api } from '../../api.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { plural } from '../../parts/format.ts'
import { Time } from '../../parts/quantities.tsx'
import { toast } from '../../parts/toast.tsx'
import { navigate } from '../../router.ts'
import { isOwner } from '../../session.ts'
import { FactChart } from './fact-chart.tsx'
import { type MemoryPlace, memoryHref, memoryQuery } from './memory-address.ts'
import { useMemoryAction, useMemoryData } from './memory-client.ts'
import { dayText } from './memory-dates.ts'
import { MemoryFailure, MemoryLoading } from './memory-states.tsx'

const pathOf = (place: MemoryPlace): string =>
  `admin/memory/episodes/${encodeURIComponent(place.id ?? '')}${memoryQuery({ ...place, group: undefined, asOf: undefined })}`

/** One episode: its text, unchanged, and what was read from it. */
export const EpisodePane = ({ place }: { readonly place: MemoryPlace }) => {
  const { data, error } = useMemoryData<EpisodeDetails>(pathOf(place))
  const [isAsking, setAsking] = useState(false)
  if (error !== undefined) return <MemoryFailure message={error} />
  if (!data) return <MemoryLoading />
  const { episode, entities, facts } = data
  return (
    <article class="memory-page">
      <header class="memory-head">
        <h2>{episode.name}</h2>
        <Badge>{episode.group}</Badge>
        {episode.state !== 'ready' && (
          <Badge kind={episode.state === 'failed' ? 'error' : 'neutral'} title={episode.error}>
            {episode.state}
          </Badge>
        )}
        <span class="memory-actions">
          <Button
            icon="trash"
            kind="danger"
            disabled={!isOwner.value}
            title={isOwner.value ? undefined : 'Only the owner may delete'}
            onClick={() => setAsking(true)}
          >
            Delete
          </Button>
        </span>
      </header>
      <p class="quiet">
        {dayText(episode.at)} · {episode.source}
        {episode.description !== '' && ` · ${episode.description}`} · {plural(episode.characters, 'character')} · stored{' '}
        <Time at={episode.storedAt} />
        {episode.saga !== undefined && ` · part of ${episode.saga}`}
      </p>
      {episode.error !== undefined && <p class="memory-error">{episode.error}</p>}
      <pre class="memory-body">{episode.text}</pre>
      <h3>Entities</h3>
      <ul class="memory-chips">
        {entities.map(({ id, name }) => (
          <li key={id}>
            <a href={memoryHref({ ...place, view: 'entity', id })}>{name}</a>
          </li>
        ))}
        {entities.length === 0 && <li class="quiet">It names none.</li>}
      </ul>
      <h3>Facts</h3>
      {facts.length === 0 ? <p class="quiet">It states none.</p> : <FactChart facts={facts} place={place} />}
      {isAsking && <DeleteEpisode details={data} place={place} onClose={() => setAsking(false)} />}
    </article>
  )
}

interface DeleteEpisodeProps {
  readonly details: EpisodeDetails
  readonly place: MemoryPlace
  readonly onClose: () => void
}

const DeleteEpisode = ({ details, place, onClose }: DeleteEpisodeProps) => {
  const { isBusy, error, run } = useMemoryAction()
  const { episode, facts } = details
  const only = facts.filter(({ episodes }) => episodes.length <= 1).length
  const remove = async (): Promise<void> => {
    await api.delete(pathOf(place))
    toast(`Deleted “${episode.name}”`, { kind: 'ok' })
    navigate(memoryHref({ ...place, view: 'timeline', id: undefined }))
  }
  return (
    <Confirm
      title={`Delete “${episode.name}”?`}
      action="Delete"
      isDanger
      isBusy={isBusy}
      onConfirm={() => void run(remove)}
      onClose={onClose}
    >
      <p>
        The episode goes, and {plural(only, 'fact')} that only it states. Facts that other episodes state stay. Single
        words may remain in the search index until it is compacted; <strong>Forget</strong> erases every byte.
      </p>
      {error !== undefined && <p class="memory-error">{error}</p>}
    </Confirm>
  )
}
