import { BoundedCache } from '../../../std/bounded-cache.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { EntityRef, Job, NewEntity, NewFact } from '../model.ts'
import type { MemoryStore } from '../store.ts'
import { type JobHandler, PermanentFailure } from '../worker.ts'
import { type BudgetLimits, type Spend, tokensIn } from './budget.ts'
import type { Chat, ChatQuestion } from './chat.ts'
import {
  type Candidates,
  type Comparison,
  comparisonQuestion,
  findCandidates,
  NO_MATCHES,
  readComparison,
} from './comparison.ts'
import { type Endpoint, type EndpointOptions, RejectedRequest } from './endpoint.ts'
import { type ExtractionMaterial, extractionQuestion, gatherMaterial, kindsFor } from './extraction-prompt.ts'
import { type Findings, namesIn, readFindings, UnusableAnswer } from './findings.ts'

/** A model that reads episodes for entities and facts. */
export interface ExtractionOptions extends EndpointOptions, BudgetLimits {
  readonly model: string
  readonly smallModel?: string | undefined // compares findings with stored ones; `model` when absent
}

export interface ExtractJobOptions {
  readonly endpoint: Endpoint
  readonly chat: Chat
  readonly spend: Spend
  readonly options: ExtractionOptions
  readonly embeds: boolean // vectors are computed for the findings
  readonly log: Log
}

const MOST_CHARACTERS = 40_000 // of an episode that the model reads; rules read all of it
const MOST_UNUSABLE = 3 // answers to one episode
const ANSWER_TOKENS = 800 // estimated for an answer
const CONFIDENCE = 0.7
const MOST_KEPT = 100

/** Lets a model read an episode: one call for all its statements, and one more if similar ones are stored. */
export const createExtractJob = ({ endpoint, chat, spend, options, embeds, log }: ExtractJobOptions): JobHandler => {
  const { model, smallModel = model } = options
  // The findings of jobs whose second call has to wait, so that the first is not paid twice.
  const kept = new WeakMap<MemoryStore, BoundedCache<Findings>>()

  const ask = async (store: MemoryStore, question: ChatQuestion, signal: AbortSignal): Promise<unknown> => {
    endpoint.ensureReady()
    const estimate = tokensIn(question.system + question.user) + ANSWER_TOKENS
    const reply = await spend(store, estimate, () => chat(question, signal))
    if (reply.kind === 'problem') throw new UnusableAnswer(reply.problem)
    return reply.value
  }

  const find = async (
    store: MemoryStore,
    job: Job,
    material: ExtractionMaterial,
    signal: AbortSignal,
  ): Promise<Findings> => {
    const ofStore = kept.get(store) ?? new BoundedCache(MOST_KEPT, Number.POSITIVE_INFINITY)
    kept.set(store, ofStore)
    const before = ofStore.get(String(job.id))
    if (before) return before
    const answer = await ask(store, extractionQuestion(material, model), signal)
    const findings = readFindings(answer, {
      isNamed: namesIn(material),
      kinds: kindsFor(material),
      excluded: material.wishes.excluded,
      passages: material.passages.length,
    })
    ofStore.set(String(job.id), findings)
    return findings
  }

  const perform: JobHandler = async (store, job, lease, signal) => {
    const episode = job.episode === undefined ? undefined : await store.episode(job.episode)
    if (!episode) return
    const findings = await find(store, job, await gatherMaterial(store, episode, job.payload, MOST_CHARACTERS), signal)
    const candidates = await findCandidates(store, episode, findings)
    const question = comparisonQuestion(findings, candidates, smallModel)
    const comparison = question ? readComparison(await ask(store, question, signal), findings, candidates) : NO_MATCHES
    const jobs = embeds ? [{ kind: 'embed' } as const] : []
    const added = await store.enrich(episode.uuid, { ...merge(findings, candidates, comparison), jobs }, lease)
    kept.get(store)?.delete(String(job.id))
    const counts = { entities: findings.entities.length, facts: added.facts.length, closed: added.closed.length }
    log.debug({ job: job.id, group: job.group, ...counts, dropped: findings.dropped }, 'episode read by a model')
  }

  return (store, job, lease, signal) =>
    perform(store, job, lease, signal).catch((error: unknown) => {
      const isOver =
        error instanceof RejectedRequest || (error instanceof UnusableAnswer && job.attempts >= MOST_UNUSABLE)
      if (isOver || error instanceof PermanentFailure) kept.get(store)?.delete(String(job.id))
      throw isOver ? new PermanentFailure((error as Error).message, { cause: error }) : error
    })
}

/** The findings to store, with references to the stored entities and facts they equal. */
const merge = (
  { entities, facts }: Findings,
  { named }: Candidates,
  { sameEntity, sameFact, contradicted }: Comparison,
): { readonly entities: readonly NewEntity[]; readonly facts: readonly NewFact[] } => ({
  entities: entities.map(({ name, aliases, kind, summary }, place): NewEntity => {
    const same = sameEntity.get(place)
    const known = same ?? named.get(place)
    const labels = ['Entity', ...(kind === undefined ? [] : [kind])]
    const isNew = summary !== '' && !known?.summary // a model does not replace a summary that is there
    return { name, aliases, labels, ...(isNew && { summary }), ...(same && { uuid: same.uuid }) }
  }),
  facts: facts.flatMap(({ source, target, passage, ...fact }, place): NewFact[] => {
    const idOf = (end: number): number | undefined => (sameEntity.get(end) ?? named.get(end))?.id
    // Two names of one entity leave nothing to state between them.
    if (idOf(source) !== undefined && idOf(source) === idOf(target)) return []
    const refTo = (end: number): EntityRef => {
      const same = sameEntity.get(end)
      return same ? { uuid: same.uuid } : { name: entities[end]?.name ?? '' }
    }
    const [same, against] = [sameFact.get(place), contradicted.get(place)]
    return [
      {
        ...fact,
        source: refTo(source),
        target: refTo(target),
        origin: 'llm',
        confidence: CONFIDENCE,
        ...(passage !== undefined && { doc: passage }),
        ...(same && { sameAs: same.uuid }),
        ...(against && { contradicts: against.map(({ uuid }) => uuid) }),
      },
    ]
  }),
})
