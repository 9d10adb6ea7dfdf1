import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import type { EntityView, FactView, MemorySearch, PassageView } from '../../../protocol/memory-views.ts'
import { Badge } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { plural } from '../../parts/format.ts'
import { excerptOf, repeatsText } from './highlight.ts'
import { MarkedText } from './marked-text.tsx'
import { type MemoryPlace, memoryHref, memoryQuery } from './memory-address.ts'
import { useMemoryData } from './memory-client.ts'
import { dayText, isPast, spanText } from './memory-dates.ts'
import { MemoryFailure, MemoryLoading } from './memory-states.tsx'

const DEBOUNCE_MS = 150
const NOTE = 'Note' // where facts with a single entity lead
const LONGEST_PASSAGE = 420 // characters

/** What a query finds: facts, entities and passages of the original texts, each the best first. */
export const SearchView = ({ place }: { readonly place: MemoryPlace }) => {
  const list = useRef<HTMLDivElement>(null)
  const query = place.query.trim()
  const path = query === '' ? undefined : `admin/memory/search${memoryQuery(place, { q: query.slice(0, 1000) })}`
  const { data, error, isLoading } = useMemoryData<MemorySearch>(path, DEBOUNCE_MS)

  if (query === '') return <SearchHint place={place} />
  if (error !== undefined) return <MemoryFailure message={error} />
  if (!data) return <MemoryLoading />
  const { facts, entities, passages } = data
  if (facts.length + entities.length + passages.length === 0)
    return (
      <Empty
        icon="search"
        title={`Nothing matches “${query.slice(0, 80)}”`}
        text="Search uses the words that matter: names, subjects and dates. Try fewer of them, or another group."
      />
    )
  return (
    <div
      ref={list}
      class="memory-results"
      role="group"
      aria-label="Results"
      aria-busy={isLoading}
      onKeyDown={event => moveFocus(event, list.current)}
    >
      <Section title="Facts" count={facts.length}>
        {facts.map(fact => (
          <FactResult key={fact.id} {...{ fact, place }} />
        ))}
      </Section>
      <Section title="Entities" count={entities.length}>
        {entities.map(entity => (
          <EntityResult key={entity.id} {...{ entity, place }} />
        ))}
      </Section>
      <Section title="Passages" count={passages.length}>
        {passages.map((passage, at) => (
          <PassageResult key={`${passage.episode.id} ${at}`} {...{ passage, place }} />
        ))}
      </Section>
    </div>
  )
}

const SearchHint = ({ place }: { readonly place: MemoryPlace }) => (
  <Empty
    icon="search"
    title="Search the memory"
    text="Ask in plain words, as agents do: “Where did Ann park?”. Facts, entities and the original texts are searched at once. With a date, only what was true then is found."
  >
    <a class="button button-plain" href={memoryHref({ ...place, view: 'timeline' })}>
      Latest memories
    </a>
    <a class="button button-plain" href={memoryHref({ ...place, view: 'graph' })}>
      Graph
    </a>
  </Empty>
)

/** The arrow keys, `j` and `k` move between results. */
const moveFocus = (event: KeyboardEvent, list: HTMLElement | null): void => {
  const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
  if (by === undefined || !list || event.ctrlKey || event.metaKey) return
  const links = [...list.querySelectorAll<HTMLElement>('.memory-result')]
  const at = links.indexOf(document.activeElement as HTMLElement)
  const next = links[at + by]
  if (!next) return
  event.preventDefault()
  next.focus()
}

interface SectionProps {
  readonly title: string
  readonly count: number
  readonly children: ComponentChildren
}

const Section = ({ title, count, children }: SectionProps) =>
  count === 0 ? null : (
    <section class="memory-section" aria-label={title}>
      <h2>
        {title} <span class="tab-count">{count}</span>
      </h2>
      <ul>{children}</ul>
    </section>
  )

const FactResult = ({ fact, place }: { readonly fact: FactView; readonly place: MemoryPlace }) => {
  const [episode] = fact.episodes
  return (
    <li>
      <a class="memory-result" href={memoryHref({ ...place, view: 'entity', id: fact.source.id, query: '' })}>
        <span class={isPast(fact, Date.now()) ? 'memory-text memory-past' : 'memory-text'}>
          <MarkedText text={fact.text} query={place.query} />
        </span>
        <span class="memory-meta">
          <span>{spanText(fact)}</span>
          <span>{fact.target.name === NOTE ? fact.source.name : `${fact.source.name} → ${fact.target.name}`}</span>
          {episode && !repeatsText(episode.name, fact.text) && <span class="truncate">from “{episode.name}”</span>}
          <Badge>{fact.group}</Badge>
        </span>
      </a>
    </li>
  )
}

const EntityResult = ({ entity, place }: { readonly entity: EntityView; readonly place: MemoryPlace }) => (
  <li>
    <a class="memory-result" href={memoryHref({ ...place, view: 'entity', id: entity.id, query: '' })}>
      <span class="memory-text">
        <MarkedText text={entity.name} query={place.query} />
      </span>
      <span class="memory-meta">
        <span>{plural(entity.facts, 'fact')}</span>
        {entity.labels.length > 0 && <span>{entity.labels.join(', ')}</span>}
        {entity.summary !== '' && <span class="truncate">{entity.summary}</span>}
        <Badge>{entity.group}</Badge>
      </span>
    </a>
  </li>
)

const PassageResult = ({ passage, place }: { readonly passage: PassageView; readonly place: MemoryPlace }) => (
  <li>
    <a class="memory-result" href={memoryHref({ ...place, view: 'episode', id: passage.episode.id, query: '' })}>
      <span class="memory-text">
        {passage.speaker !== undefined && <strong>{passage.speaker}: </strong>}
        <MarkedText text={excerptOf(passage.text, place.query, LONGEST_PASSAGE)} query={place.query} />
      </span>
      <span class="memory-meta">
        <span>{dayText(passage.at)}</span>
        {!repeatsText(passage.episode.name, passage.text) && <span class="truncate">in “{passage.episode.name}”</span>}
        <Badge>{passage.group}</Badge>
      </span>
    </a>
  </li>
)
