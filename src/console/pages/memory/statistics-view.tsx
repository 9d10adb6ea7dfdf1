import type { ComponentChildren } from 'preact'
import type { MemoryServerInfo } from '../../../admin/api/memory.ts'
import type { MemoryStats } from '../../../protocol/memory-views.ts'
import { formatCount, plural } from '../../parts/format.ts'
import { Bytes, Time } from '../../parts/quantities.tsx'
import { type MemoryPlace, memoryHref } from './memory-address.ts'
import { dayText } from './memory-dates.ts'
import { MemoryJobs } from './memory-jobs.tsx'

export interface StatisticsViewProps {
  readonly place: MemoryPlace
  readonly server: MemoryServerInfo
  readonly stats: MemoryStats
}

/** The size of the memory, its groups, background jobs, and who changed it by hand. */
export const StatisticsView = ({ place, server, stats }: StatisticsViewProps) => {
  const sum = (key: 'episodes' | 'entities' | 'facts' | 'expired'): number =>
    stats.groups.reduce((total, group) => total + group[key], 0)
  return (
    <div class="memory-page">
      <dl class="memory-figures">
        <Figure title="Episodes">{formatCount(sum('episodes'))}</Figure>
        <Figure title="Entities">{formatCount(sum('entities'))}</Figure>
        <Figure title="Facts" note={`${formatCount(sum('expired'))} no longer true`}>
          {formatCount(sum('facts'))}
        </Figure>
        <Figure title="Passages" note={stats.vectors > 0 ? plural(stats.vectors, 'vector') : 'searched by words'}>
          {formatCount(stats.passages)}
        </Figure>
        <Figure title="Size" note={`${server.storage}, ${stats.driver}`}>
          <Bytes value={stats.bytes} />
        </Figure>
        <Figure title="From" note={stats.lastAt === undefined ? undefined : `to ${dayText(stats.lastAt)}`}>
          {stats.firstAt === undefined ? '–' : dayText(stats.firstAt)}
        </Figure>
      </dl>
      <p class="quiet">
        {server.extractionModel === undefined
          ? 'Facts are read by rules'
          : `Facts are read by rules and by the model ${server.extractionModel}`}
        , search uses words{server.embeddingModel !== undefined && ` and vectors of ${server.embeddingModel}`}.
      </p>
      <h3>Groups</h3>
      <GroupTable groups={stats.groups} place={place} />
      <MemoryJobs place={place} />
      <h3>Changes by hand and by commands</h3>
      <Changes changes={stats.changes} />
    </div>
  )
}

interface FigureProps {
  readonly title: string
  readonly note?: string | undefined
  readonly children: ComponentChildren
}

const Figure = ({ title, note, children }: FigureProps) => (
  <div>
    <dt>{title}</dt>
    <dd>
      <strong>{children}</strong>
      {note !== undefined && <span class="quiet">{note}</span>}
    </dd>
  </div>
)

const GroupTable = ({ groups, place }: { readonly groups: MemoryStats['groups']; readonly place: MemoryPlace }) => (
  <table class="plain-table">
    <thead>
      <tr>
        <th scope="col">Group</th>
        <th scope="col" class="number">
          Episodes
        </th>
        <th scope="col" class="number">
          Entities
        </th>
        <th scope="col" class="number">
          Facts
        </th>
        <th scope="col" class="number">
          No longer true
        </th>
      </tr>
    </thead>
    <tbody>
      {groups.map(({ group, episodes, entities, facts, expired }) => (
        <tr key={group}>
          <th scope="row">
            <a href={memoryHref({ ...place, view: 'timeline', group })}>{group}</a>
          </th>
          {[episodes, entities, facts, expired].map((count, at) => (
            <td key={at} class="number">
              {formatCount(count)}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
)

const Changes = ({ changes }: Pick<MemoryStats, 'changes'>) =>
  changes.length === 0 ? (
    <p class="quiet">None yet. Corrections, deletions and everything that was forgotten are listed here.</p>
  ) : (
    <ul class="memory-changes">
      {changes.map(({ at, actor, action, ids }, index) => (
        <li key={index}>
          <Time at={at} /> · {action} · {plural(ids, 'item')} · <span class="quiet">by {actor ?? 'an agent'}</span>
        </li>
      ))}
    </ul>
  )
