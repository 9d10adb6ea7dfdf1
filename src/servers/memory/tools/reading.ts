import type { Tool } from '../../define/tools.ts'
import type { Desk } from '../desk.ts'
import { Refusal } from '../refusal.ts'
import type { StoreStats } from '../store.ts'
import { groups, integer, optional, required, text, texts } from './arguments.ts'
import { MOST_BYTES, withinBytes } from './bounds.ts'
import { shownEdge, shownEpisode, shownFact, shownJob, shownNode } from './present.ts'
import { ANY_OBJECT } from './shapes.ts'
import { memoryTool } from './tool.ts'

const MOST_EPISODES = 1000
const MOST_JOBS = 500

const getEdge = (desk: Desk): Tool =>
  memoryTool({
    name: 'get_entity_edge',
    title: 'Read a fact',
    description: 'Read one fact whole by its uuid: its four times, its episodes, who stated it and how sure it is.',
    effect: 'reads',
    args: { uuid: required(text, 'The uuid of the fact') },
    success: ANY_OBJECT,
    run: ({ uuid }) =>
      desk.with(async store => {
        const fact = await store.fact(uuid)
        if (!fact) throw new Refusal(`Error getting entity edge: edge ${uuid} not found`)
        return shownFact(fact)
      }),
  })

const getEpisodes = (desk: Desk): Tool =>
  memoryTool({
    name: 'get_episodes',
    title: 'Latest episodes',
    description: 'List the latest episodes as they were told, newest first. To find something, search instead.',
    effect: 'reads',
    args: {
      group_ids: optional(groups, undefined, 'A group or a list of groups; the default group when absent'),
      max_episodes: optional(integer, 10, 'How many, at most'),
    },
    success: 'EpisodeSearchResponse',
    run: ({ group_ids, max_episodes }) =>
      desk.with(async store => {
        if (max_episodes <= 0) throw new Refusal('max_episodes must be a positive integer')
        const limit = Math.min(max_episodes, MOST_EPISODES)
        const groups = desk.groupsFor(group_ids)
        const found = await store.episodes({ groups, limit, order: 'newest', mostBytes: MOST_BYTES })
        const { items, left } = withinBytes(found.map(shownEpisode))
        const message = found.length === 0 ? 'No episodes found' : 'Episodes retrieved successfully'
        return {
          message: left > 0 ? `${message}; more would be too large for one answer` : message,
          episodes: items,
        }
      }),
  })

const getEpisodeEntities = (desk: Desk): Tool =>
  memoryTool({
    name: 'get_episode_entities',
    title: 'What episodes tell of',
    description: 'List the entities and facts that came from the given episodes.',
    effect: 'reads',
    args: { episode_uuids: required(texts, 'uuids of episodes') },
    success: 'EpisodeEntitiesResponse',
    run: ({ episode_uuids }) =>
      desk.with(async store => {
        if (episode_uuids.length === 0) throw new Refusal('episode_uuids must not be empty')
        const { entities, facts } = await store.episodeGraph([...new Set(episode_uuids)])
        const isEmpty = entities.length + facts.length === 0
        const nodes = withinBytes(entities.map(shownNode)).items
        const edges = withinBytes(facts.map(shownEdge)).items
        const message = isEmpty ? 'No entities found for the given episodes' : 'Episode entities retrieved successfully'
        return { message, nodes, edges }
      }),
  })

const getStatus = (desk: Desk): Tool =>
  memoryTool({
    name: 'get_status',
    title: 'Memory status',
    description: 'Say whether memory works, how much it holds, and whether background work waits or failed.',
    effect: 'reads',
    args: {},
    success: 'StatusResponse',
    bare: true,
    run: () =>
      desk
        .with(store => store.stats())
        .then(
          stats => ({ status: 'ok', message: statusMessage(stats) }),
          (error: unknown) => ({ status: 'error', message: error instanceof Error ? error.message : String(error) }),
        ),
  })

const statusMessage = ({ driver, groups: all, jobs }: StoreStats): string => {
  const sum = (key: 'episodes' | 'facts' | 'entities') => all.reduce((total, group) => total + group[key], 0)
  const counts = `${sum('episodes')} episodes, ${sum('entities')} entities and ${sum('facts')} facts in ${all.length} groups`
  const work = `${jobs.waiting + jobs.leased} jobs pending, ${jobs.failed} failed`
  return `Memory is running on ${driver}: ${counts}; ${work}`
}

const getJobs = (desk: Desk): Tool =>
  memoryTool({
    name: 'get_memory_jobs',
    title: 'Background work',
    description:
      'List background work on memory that waits, runs or failed, with the reason. Nothing here delays search: what was added is found at once.',
    effect: 'reads',
    args: {
      group_ids: optional(groups, undefined, 'A group or a list of groups; the default group when absent'),
      max_jobs: optional(integer, 50, 'How many, at most'),
    },
    success: 'JobsResponse',
    run: ({ group_ids, max_jobs }) =>
      desk.with(async store => {
        if (max_jobs <= 0) throw new Refusal('max_jobs must be a positive integer')
        const jobs = await store.jobs({ groups: desk.groupsFor(group_ids), limit: Math.min(max_jobs, MOST_JOBS) })
        const message = jobs.length === 0 ? 'No jobs found' : 'Jobs retrieved successfully'
        return { message, jobs: jobs.map(shownJob) }
      }),
  })

/** The tools that look things up by what they are called. */
export const readingTools = (desk: Desk) => ({
  getEdge: getEdge(desk),
  getEpisodes: getEpisodes(desk),
  getEpisodeEntities: getEpisodeEntities(desk),
  getStatus: getStatus(desk),
  getJobs: getJobs(desk),
})
