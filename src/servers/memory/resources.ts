import type { PlainObject } from '../../wire/json/json.ts'
import { type Resource, resource, type Template, template } from '../define/resources.ts'
import type { MemoryStore, StoreChange } from './store.ts'
import { MOST_BYTES, presentEpisode, presentFact, presentNode, withinBytes } from './tools/results.ts'
import type { ToolContext } from './tools/tool.ts'

const JSON_TYPE = 'application/json'
const LATEST = 50 // episodes in the list; search finds the others
const MOST_READ = 16 * MOST_BYTES // the list needs their sizes only

const uriOf = (kind: string, id: string): string => `memory://${kind}/${encodeURIComponent(id)}`
const toText = (object: PlainObject): string => JSON.stringify(object, undefined, 2)

/** The resources of one kind, by their id. */
const byUuid = (
  { withStore }: ToolContext,
  kind: 'episode' | 'entity' | 'fact',
  description: string,
  find: (store: MemoryStore, uuid: string) => Promise<PlainObject | undefined>,
): Template =>
  template({
    uriTemplate: `memory://${kind}/{uuid}`,
    name: kind,
    title: kind.charAt(0).toUpperCase() + kind.slice(1),
    description,
    mimeType: JSON_TYPE,
    read: async ({ uuid }) => {
      const found = await withStore(store => find(store, uuid))
      return found && toText(found)
    },
  })

export const memoryTemplates = (context: ToolContext): readonly Template[] => [
  byUuid(context, 'episode', 'An episode as it was added', async (store, uuid) => {
    const found = await store.episode(uuid)
    return found && presentEpisode(found)
  }),
  byUuid(context, 'entity', 'An entity, and the facts about it', async (store, uuid) => {
    const found = await store.entity(uuid)
    const facts = found ? await store.factsOfEntities([found.id], LATEST) : []
    return found && { ...presentNode(found), facts: facts.map(presentFact) }
  }),
  byUuid(context, 'fact', 'A fact with its times and its origin', async (store, uuid) => {
    const found = await store.fact(uuid)
    return found && presentFact(found)
  }),
  template({
    uriTemplate: 'memory://group/{group_id}',
    name: 'group',
    title: 'Group',
    description: 'The latest episodes of a group; subscribe to be notified of every change in it',
    mimeType: JSON_TYPE,
    read: ({ group_id }) =>
      context.withStore(async store => {
        const episodes = await store.episodes({ groups: [group_id], limit: LATEST, mostBytes: MOST_BYTES })
        return toText({ group_id, episodes: withinBytes(episodes.map(presentEpisode)).items })
      }),
  }),
]

/** The listed resources: the latest episodes of every group. */
export const latestEpisodes = ({ withStore }: ToolContext): Promise<readonly Resource[]> =>
  withStore(async store => {
    const episodes = await store.episodes({ groups: 'all', limit: LATEST, order: 'newest', mostBytes: MOST_READ })
    return episodes.map(({ uuid, name, group, content }) =>
      resource({
        uri: uriOf('episode', uuid),
        name: `${group}/${name}`,
        title: name,
        mimeType: JSON_TYPE,
        size: Buffer.byteLength(content),
        read: async () => {
          const found = await withStore(open => open.episode(uuid))
          return toText(found ? presentEpisode(found) : { uuid, error: 'This episode was deleted' })
        },
      }),
    )
  })

/** The URIs of the resources that a change affects. */
export const changedBy = ({ kind, group, uuids }: StoreChange): readonly string[] => {
  const direct = kind === 'episode' || kind === 'entity' || kind === 'fact' ? uuids.map(uuid => uriOf(kind, uuid)) : []
  return [...direct, uriOf('group', group)]
}
