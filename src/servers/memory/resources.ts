import type { PlainObject } from '../../wire/json/json.ts'
import { type Resource, resource, type Template, template } from '../define/resources.ts'
import type { Desk } from './desk.ts'
import type { Change } from './store.ts'
import { MOST_BYTES, withinBytes } from './tools/bounds.ts'
import { shownEpisode, shownFact, shownNode } from './tools/present.ts'

const JSON_TYPE = 'application/json'
const LATEST = 50 // episodes that the list shows; the others are found by search
const MOST_READ = 16 * MOST_BYTES // for a list of their sizes

const uriOf = (kind: string, id: string): string => `memory://${kind}/${encodeURIComponent(id)}`
const written = (object: PlainObject): string => JSON.stringify(object, undefined, 2)

/** The families of things in memory that can be read and watched. */
export const memoryTemplates = (desk: Desk): readonly Template[] => [
  template({
    uriTemplate: 'memory://episode/{uuid}',
    name: 'episode',
    title: 'Episode',
    description: 'An episode as it was told',
    mimeType: JSON_TYPE,
    read: ({ uuid }) => desk.with(store => store.episode(uuid)).then(found => found && written(shownEpisode(found))),
  }),
  template({
    uriTemplate: 'memory://entity/{uuid}',
    name: 'entity',
    title: 'Entity',
    description: 'An entity, and the facts about it',
    mimeType: JSON_TYPE,
    read: ({ uuid }) =>
      desk.with(async store => {
        const found = await store.entity(uuid)
        const facts = found ? await store.factsOfEntities([found.id], LATEST) : []
        return found && written({ ...shownNode(found), facts: facts.map(shownFact) })
      }),
  }),
  template({
    uriTemplate: 'memory://fact/{uuid}',
    name: 'fact',
    title: 'Fact',
    description: 'A fact with its times and its origin',
    mimeType: JSON_TYPE,
    read: ({ uuid }) => desk.with(store => store.fact(uuid)).then(found => found && written(shownFact(found))),
  }),
  template({
    uriTemplate: 'memory://group/{group_id}',
    name: 'group',
    title: 'Group',
    description: 'The latest episodes of a group; watch it to hear of every change in it',
    mimeType: JSON_TYPE,
    read: ({ group_id }) =>
      desk.with(async store => {
        const episodes = await store.episodes({ groups: [group_id], limit: LATEST, mostBytes: MOST_BYTES })
        return written({ group_id, episodes: withinBytes(episodes.map(shownEpisode)).items })
      }),
  }),
]

/** What the list of resources shows: the latest episodes of every group. */
export const latestEpisodes = (desk: Desk): Promise<readonly Resource[]> =>
  desk.with(async store => {
    const episodes = await store.episodes({ groups: 'all', limit: LATEST, order: 'newest', mostBytes: MOST_READ })
    return episodes.map(({ uuid, name, group, content }) =>
      resource({
        uri: uriOf('episode', uuid),
        name: `${group}/${name}`,
        title: name,
        mimeType: JSON_TYPE,
        size: Buffer.byteLength(content),
        read: async () => {
          const found = await desk.with(open => open.episode(uuid))
          return written(found ? shownEpisode(found) : { uuid, error: 'This episode was deleted' })
        },
      }),
    )
  })

/** The resources that are other than they were after a change. */
export const changedBy = ({ kind, group, uuids }: Change): readonly string[] => {
  const own = kind === 'episode' || kind === 'entity' || kind === 'fact' ? uuids.map(uuid => uriOf(kind, uuid)) : []
  return [...own, uriOf('group', group)]
}
