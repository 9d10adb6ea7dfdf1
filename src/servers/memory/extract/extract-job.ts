import type { Log } from '../../../telemetry/log.ts'
import type { EntityRef, Job, NewEntity, NewFact } from '../model.ts'
import type { MemoryStore } from '../store.ts'
import { type Handle, Hopeless } from '../worker.ts'
import { type Spend, tokensIn } from './budget.ts'
import type { Chat, Question } from './chat.ts'
import { type Endpoint, Refused } from './endpoint.ts'
import { type Findings, readFindings, Unusable } from './findings.ts'
import { groundsOf } from './grounds.ts'
import { type Judgement, NO_JUDGEMENT, questionAbout, readJudgement } from './judgement.ts'
import { type Known, lookUp } from './known.ts'
import { gather, type Material } from './material.ts'
import type { ExtractionOptions } from './options.ts'
import { kindsFor, questionOf } from './question-of-material.ts'

export interface ExtractParts {
  readonly endpoint: Endpoint
  readonly chat: Chat
  readonly spend: Spend
  readonly options: ExtractionOptions
  readonly embeds: boolean // what is found wants vectors too
  readonly log: Log
}

const MOST_CHARACTERS = 40_000
const MOST_LIES = 3 // unusable answers to one episode
const ANSWER_TOKENS = 800 // set aside for an answer
const CONFIDENCE = 0.7
const MOST_KEPT = 100

/** Lets a model read an episode: one call for all it states, and one more if something known comes near that. */
export const createExtractJob = ({ endpoint, chat, spend, options, embeds, log }: ExtractParts): Handle => {
  const { model, smallModel = model, entityTypes, mostCharacters = MOST_CHARACTERS } = options
  // What the first call found, while the second has to wait.
  const kept = new WeakMap<MemoryStore, Map<number, Findings>>()

  const ask = async (store: MemoryStore, question: Question, signal: AbortSignal): Promise<unknown> => {
    endpoint.ensureReady()
    const estimate = tokensIn(question.system + question.user) + ANSWER_TOKENS
    const reply = await spend(store, estimate, () => chat(question, signal))
    if (reply.kind === 'problem') throw new Unusable(reply.problem)
    return reply.value
  }

  const find = async (store: MemoryStore, job: Job, material: Material, signal: AbortSignal): Promise<Findings> => {
    const mine = kept.get(store) ?? new Map<number, Findings>()
    kept.set(store, mine)
    const before = mine.get(job.id)
    if (before) return before
    const { passages, wishes } = material
    const bounds = { isNamed: groundsOf(material), kinds: kindsFor(material, entityTypes), excluded: wishes.excluded }
    const answer = await ask(store, questionOf(material, model, entityTypes), signal)
    const findings = readFindings(answer, { ...bounds, passages: passages.length })
    if (mine.size >= MOST_KEPT) mine.clear()
    mine.set(job.id, findings)
    return findings
  }

  const judge = async (
    store: MemoryStore,
    findings: Findings,
    known: Known,
    signal: AbortSignal,
  ): Promise<Judgement> => {
    const question = questionAbout(findings, known, smallModel)
    return question ? readJudgement(await ask(store, question, signal), findings, known) : NO_JUDGEMENT
  }

  const perform: Handle = async (store, job, lease, signal) => {
    const episode = job.episode === undefined ? undefined : await store.episode(job.episode)
    if (!episode) return
    const findings = await find(store, job, await gather(store, episode, job.payload, mostCharacters), signal)
    const known = await lookUp(store, episode, findings)
    const judgement = await judge(store, findings, known, signal)
    const jobs = embeds ? [{ kind: 'embed' } as const] : []
    const added = await store.enrich(episode.uuid, { ...learnt(findings, known, judgement), jobs }, lease)
    kept.get(store)?.delete(job.id)
    const counts = { entities: findings.entities.length, facts: added.facts.length, closed: added.closed.length }
    log.debug({ job: job.id, group: job.group, ...counts, dropped: findings.dropped }, 'a model read an episode')
  }

  return (store, job, lease, signal) =>
    perform(store, job, lease, signal).catch((error: unknown) => {
      const isOver = error instanceof Refused || (error instanceof Unusable && job.attempts >= MOST_LIES)
      if (isOver || error instanceof Hopeless) kept.get(store)?.delete(job.id)
      throw isOver ? new Hopeless((error as Error).message, { cause: error }) : error
    })
}

/** What is to be stored, with what is known put in place of what was found again. */
const learnt = (
  { entities, facts }: Findings,
  { named }: Known,
  { sameEntity, sameFact, contradicted }: Judgement,
): { readonly entities: readonly NewEntity[]; readonly facts: readonly NewFact[] } => {
  const refs = entities.map(({ name }, place): EntityRef => {
    const same = sameEntity.get(place)
    return same ? { uuid: same.uuid } : { name }
  })
  const entityAt = (place: number): NewEntity[] => {
    const found = entities[place]
    if (!found) return []
    const known = sameEntity.get(place) ?? named.get(place)
    const same = sameEntity.get(place)
    // Somebody's own words about it are not replaced by a model's.
    const summary = found.summary !== '' && (known?.summary ?? '') === '' ? { summary: found.summary } : {}
    const labels = ['Entity', ...(found.kind === undefined ? [] : [found.kind])]
    return [{ name: found.name, aliases: found.aliases, labels, ...summary, ...(same && { uuid: same.uuid }) }]
  }
  return {
    entities: entities.flatMap((_, place) => entityAt(place)),
    facts: facts.flatMap(({ source, target, passage, ...fact }, place): NewFact[] => {
      const [from, to] = [refs[source], refs[target]]
      const [one, other] = [source, target].map(end => (sameEntity.get(end) ?? named.get(end))?.id)
      // Two names that turned out to be one entity's leave nothing to state between them.
      if (!from || !to || (one !== undefined && one === other)) return []
      const [same, against] = [sameFact.get(place), contradicted.get(place)]
      return [
        {
          ...fact,
          source: from,
          target: to,
          origin: 'llm',
          confidence: CONFIDENCE,
          ...(passage !== undefined && { doc: passage }),
          ...(same && { sameAs: same.uuid }),
          ...(against && { contradicts: against.map(({ uuid }) => uuid) }),
        },
      ]
    }),
  }
}
