import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { readByRules } from '../../../src/servers/memory/extract/rules.ts'
import type { Enrichment, NewEpisode, NewFact } from '../../../src/servers/memory/model.ts'
import { openSqliteStore } from '../../../src/servers/memory/open-stores.ts'
import type { Added, MemoryStore } from '../../../src/servers/memory/store.ts'
import { passagesOf } from '../../../src/servers/memory/text/passages.ts'

export const DAY = 86_400_000
export const START = Date.UTC(2024, 0, 1)

/** A folder of its own that goes when the test is over. */
export const temporaryFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-memory-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A store in a file of its own. */
export const temporaryStore = async (now?: () => number): Promise<MemoryStore & { readonly path: string }> => {
  const path = join(await temporaryFolder(), 'memory.db')
  const store = await openSqliteStore({ path, ...(now && { now }) })
  onTestFinished(() => store.close())
  return { ...store, path }
}

/** An episode with what rules read from it, as the server would hand it in. */
export const episodeOf = (
  content: string,
  given: Partial<NewEpisode> & Partial<Pick<Enrichment, 'entities' | 'facts' | 'jobs'>> = {},
): [NewEpisode, Enrichment] => {
  const { entities = [], facts = [], jobs = [], ...more } = given
  const episode: NewEpisode = {
    group: 'main',
    name: 'note',
    content,
    source: 'message',
    sourceDescription: '',
    validAt: START,
    ...more,
  }
  const docs = passagesOf(episode).map(({ kind, text, actor }) => ({ kind, text, actor, dt: 'Monday 1 January 2024' }))
  const read = readByRules(docs, episode.validAt)
  return [episode, { docs, entities: [...entities, ...read.entities], facts: [...facts, ...read.facts], jobs }]
}

/** Stores an episode. */
export const tell = (store: MemoryStore, ...given: Parameters<typeof episodeOf>): Promise<Added> =>
  store.add(...episodeOf(...given))

/** A fact as an agent states it. */
export const stated = (source: string, name: string, target: string, more: Partial<NewFact> = {}): NewFact => ({
  source: { name: source },
  target: { name: target },
  name,
  fact: `${source} ${name.toLowerCase().replaceAll('_', ' ')} ${target}`,
  origin: 'agent',
  confidence: 1,
  ...more,
})

/** Every line of an export. */
export const linesOf = async (store: MemoryStore): Promise<string[]> => {
  const lines: string[] = []
  for await (const line of store.exportLines('all')) lines.push(line)
  return lines
}

export const DOC_WEIGHTS = { text: 1, actor: 1, prev: 0.5, next: 0.4, dt: 0.2 }
export const FACT_WEIGHTS = { fact: 1, ents: 1, dt: 0.2 }
export const ENTITY_WEIGHTS = { name: 1, aliases: 1, summary: 0.5 }
