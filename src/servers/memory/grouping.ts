import { setImmediate as breathe } from 'node:timers/promises'
import { communitiesOf } from './communities.ts'
import { communityDigest, digestOf } from './digest.ts'
import type { Community, Saga } from './model.ts'
import type { MemoryStore } from './store.ts'

const MOST_EPISODES = 200 // of a saga that one summary looks at, the latest
const MOST_FACTS = 40 // of a community
const NAMED = 3 // members in a community's name
const MOST_DESCRIBED = 500 // members whose facts are looked at

/** Groups the entities of the given groups anew; what was found before is replaced. */
export const regroup = async (store: MemoryStore, groups: readonly string[]): Promise<readonly Community[]> => {
  const links = await store.links(groups)
  const found = []
  for (const group of groups) {
    const own = links.filter(link => link.group === group)
    for (const ids of communitiesOf(own)) {
      found.push(await describe(store, group, ids))
      await breathe()
    }
  }
  return store.replaceCommunities(groups, found)
}

const describe = async (store: MemoryStore, group: string, ids: readonly number[]) => {
  const members = await store.entitiesById(ids)
  const facts = await store.factsOfEntities(ids.slice(0, MOST_DESCRIBED), MOST_FACTS)
  const own = new Set(ids)
  const within = facts.filter(({ sourceId, targetId }) => own.has(sourceId) && own.has(targetId))
  return {
    group,
    name: members
      .slice(0, NAMED)
      .map(member => member.name)
      .join(', '),
    summary: communityDigest(members, within),
    members: members.map(({ uuid }) => uuid),
  }
}

/** Summarises a saga up to its latest episode; undefined where there is no such saga. */
export const summarise = async (store: MemoryStore, group: string, name: string): Promise<Saga | undefined> => {
  const saga = await store.saga(group, name)
  if (!saga) return undefined
  const latest = await store.episodes({ groups: [group], saga: name, limit: MOST_EPISODES, order: 'newest' })
  const episodes = latest.toReversed()
  const last = Math.max(saga.summarisedTo, ...episodes.map(({ id }) => id))
  const summary = digestOf(episodes)
  if (last === saga.summarisedTo && summary === saga.summary) return saga
  return store.setSagaSummary(group, name, summary, last)
}
