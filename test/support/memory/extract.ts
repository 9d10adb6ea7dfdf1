import type { ExtractionOptions } from '../../../src/servers/memory/extract/extract-job.ts'
import { type Asked, type Scripted, said, scriptedEndpoint } from './endpoint.ts'
import { startModels } from './models.ts'

/** What a scripted model answers. */
export type Answer = (asked: Asked, nth: number) => Scripted

/** A memory whose episodes a scripted model reads. */
export const startExtraction = async (answer: Answer, options: Partial<ExtractionOptions> = {}) => {
  const endpoint = await scriptedEndpoint(answer)
  const extraction = { url: endpoint.url, key: 'sk-secret', model: 'large', smallModel: 'small', ...options }
  const memory = await startModels({ extraction })
  const facts = async () =>
    (await memory.use(store => store.facts(['main'], 99))).filter(({ origin }) => origin === 'llm')
  return { ...endpoint, ...memory, extraction, facts }
}

/** An entity as a model names it. */
export const entity = (name: string, kind = 'Person') => ({ name, kind, aliases: [], summary: `${name} is known.` })

/** A fact as a model states it. */
export const fact = (source: string, relation: string, target: string, more: object = {}) => ({
  source,
  relation,
  target,
  fact: `${source} ${relation.toLowerCase()} ${target}`,
  valid_at: null,
  invalid_at: null,
  passage: 0,
  ...more,
})

/** An answer to the first question. */
export const finding = (entities: readonly object[], facts: readonly object[] = []) => said({ entities, facts })

export const ANN = [entity('Ann'), entity('Berlin', 'Location')]

/** Ann lives in Berlin; then she moves. The second model is asked about that. */
export const moving =
  (judgement: unknown): Answer =>
  ({ body }) => {
    if (body.model === 'small') return said(judgement)
    const isLater = body.messages[1]?.content.includes('Paris')
    return isLater
      ? finding(
          [entity('Ann'), entity('Paris', 'Location')],
          [fact('Ann', 'LIVES_IN', 'Paris', { valid_at: '2025-01-01' })],
        )
      : finding(ANN, [fact('Ann', 'LIVES_IN', 'Berlin', { valid_at: '2024-01-01' })])
  }
