import { RequestError } from '../input-checks.ts'
import type { StoreStats } from '../store.ts'
import { GROUP_IDS, integer, optional, required, textArgument, texts } from './arguments.ts'
import {
  ANY_OBJECT,
  MOST_BYTES,
  presentEdge,
  presentEpisode,
  presentFact,
  presentJob,
  presentNode,
  withinBytes,
} from './results.ts'
import { memoryTool } from './tool.ts'

// Tools that read episodes, facts, entities, jobs and the status.

const MOST_EPISODES = 1000
const MOST_JOBS = 500

export const getEdge = memoryTool({
  name: 'get_entity_edge',
  title: 'Read a fact',
  description: 'Read one fact by its uuid: its four times, its episodes, its origin and its confidence.',
  effect: 'reads',
  args: { uuid: required(textArgument, 'The uuid of the fact') },
  success: ANY_OBJECT,
  run: async ({ uuid }, { store }) => {
    const fact = await store.fact(uuid)
    if (!fact) throw new RequestError(`Error getting entity edge: edge ${uuid} not found`)
    return presentFact(fact)
  },
})

export const getEpisodes = memoryTool({
  name: 'get_episodes',
  title: 'Latest episodes',
  description: 'List the latest episodes as they were added, newest first. To find something, search instead.',
  effect: 'reads',
  args: { group_ids: GROUP_IDS, max_episodes: optional(integer, 10, 'How many, at most') },
  success: 'EpisodeSearchResponse',
  run: async ({ group_ids, max_episodes }, { store, groupsFor }) => {
    if (max_episodes <= 0) throw new RequestError('max_episodes must be a positive integer')
    const limit = Math.min(max_episodes, MOST_EPISODES)
    const found = await store.episodes({
      groups: groupsFor(group_ids),
      limit,
      order: 'newest',
      mostBytes: MOST_BYTES,
    })
    const { items, left } = withinBytes(found.map(presentEpisode))
    const message = found.length === 0 ? 'No episodes found' : 'Episodes retrieved successfully'
    return { message: left > 0 ? `${message}; more would be too large for one answer` : message, episodes: items }
  },
})

export const getEpisodeEntities = memoryTool({
  name: 'get_episode_entities',
  title: 'Entities of episodes',
  description: 'List the entities and facts that came from the given episodes.',
  effect: 'reads',
  args: { episode_uuids: required(texts, 'uuids of episodes') },
  success: 'EpisodeEntitiesResponse',
  run: async ({ episode_uuids }, { store }) => {
    if (episode_uuids.length === 0) throw new RequestError('episode_uuids must not be empty')
    const { entities, facts } = await store.episodeGraph([...new Set(episode_uuids)])
    const isEmpty = entities.length + facts.length === 0
    return {
      message: isEmpty ? 'No entities found for the given episodes' : 'Episode entities retrieved successfully',
      nodes: withinBytes(entities.map(presentNode)).items,
      edges: withinBytes(facts.map(presentEdge)).items,
    }
  },
})

export const getStatus = memoryTool({
  name: 'get_status',
  title: 'Memory status',
  description: 'Report whether memory works, how much it stores, and whether background jobs wait or failed.',
  effect: 'reads',
  args: {},
  success: 'StatusResponse',
  isBare: true,
  run: async (_args, { store }) => ({ status: 'ok', message: statusMessage(await store.stats()) }),
  onError: message => ({ status: 'error', message }),
})

const statusMessage = ({ driver, groups, jobs }: StoreStats): string => {
  const sum = (key: 'episodes' | 'facts' | 'entities') => groups.reduce((total, group) => total + group[key], 0)
  const counts = `${sum('episodes')} episodes, ${sum('entities')} entities and ${sum('facts')} facts in ${groups.length} groups`
  return `Memory is running on ${driver}: ${counts}; ${jobs.waiting + jobs.leased} jobs pending, ${jobs.failed} failed`
}

export const getJobs = memoryTool({
  name: 'get_memory_jobs',
  title: 'Background work',
  description:
    'List background jobs that wait, run or failed, with the reason. They do not delay search: an added episode is found at once.',
  effect: 'reads',
  args: { group_ids: GROUP_IDS, max_jobs: optional(integer, 50, 'How many, at most') },
  success: 'JobsResponse',
  run: async ({ group_ids, max_jobs }, { store, groupsFor }) => {
    if (max_jobs <= 0) throw new RequestError('max_jobs must be a positive integer')
    const jobs = await store.jobs({ groups: groupsFor(group_ids), limit: Math.min(max_jobs, MOST_JOBS) })
    return { message: jobs.length === 0 ? 'No jobs found' : 'Jobs retrieved successfully', jobs: jobs.map(presentJob) }
  },
})
