import { tokensIn } from './budget.ts'
import { type Endpoint, Refused } from './endpoint.ts'

/** One question to a model, and the shape its answer must have. */
export interface Question {
  readonly model: string
  readonly system: string
  readonly user: string
  readonly name: string
  readonly schema: Readonly<Record<string, unknown>>
}

/** What came back: JSON of whatever shape, or why there is none; it has cost tokens either way. */
export type Reply =
  | { readonly kind: 'value'; readonly value: unknown; readonly tokens: number }
  | { readonly kind: 'problem'; readonly problem: string; readonly tokens: number }

export type Chat = (question: Question, signal?: AbortSignal) => Promise<Reply>

/** How JSON is asked for, the best way first; an endpoint that refuses one is asked the next. */
const WAYS: readonly ((question: Question) => Readonly<Record<string, unknown>>)[] = [
  ({ name, schema }) => ({ response_format: { type: 'json_schema', json_schema: { name, strict: true, schema } } }),
  () => ({ response_format: { type: 'json_object' } }),
  () => ({}),
]

const bodyOf = (question: Question, way: number, parameters: object): object => {
  const { model, system, user, schema } = question
  const shape =
    way === 0 ? '' : `\n\nAnswer with one JSON object and nothing else. Its schema: ${JSON.stringify(schema)}`
  const messages = [
    { role: 'system', content: system + shape },
    { role: 'user', content: user },
  ]
  return { ...parameters, model, messages, ...WAYS[way]?.(question) }
}

const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map(part => String(membersOf(part).text ?? '')).join('') : ''
}

/** JSON in a text, with whatever a model may have put around it. */
export const jsonIn = (text: string): unknown => {
  const [from, to] = [text.indexOf('{'), text.lastIndexOf('}')]
  for (const candidate of [text, text.slice(from, to + 1)]) {
    try {
      return JSON.parse(candidate)
    } catch {}
  }
  return undefined
}

const tokensOf = (usage: unknown, guess: () => number): number => {
  const { total_tokens: total, prompt_tokens: asked, completion_tokens: said } = membersOf(usage)
  const counted = typeof total === 'number' ? total : Number(asked ?? Number.NaN) + Number(said ?? 0)
  return Number.isFinite(counted) && counted > 0 ? Math.ceil(counted) : guess()
}

const read = (answer: unknown, { system, user }: Question): Reply => {
  const { choices, usage } = membersOf(answer)
  const { message, finish_reason: end } = membersOf(Array.isArray(choices) ? choices[0] : undefined)
  const { content, refusal } = membersOf(message)
  const text = textOf(content)
  const tokens = tokensOf(usage, () => tokensIn(system + user + text))
  const value = jsonIn(text)
  if (value !== undefined) return { kind: 'value', value, tokens }
  if (typeof refusal === 'string') return { kind: 'problem', problem: 'The model declined to answer.', tokens }
  if (end === 'length') return { kind: 'problem', problem: 'The answer of the model was cut off.', tokens }
  return { kind: 'problem', problem: 'The model answered with something that is not JSON.', tokens }
}

/** Asks a model for JSON, in the best way that the endpoint takes. */
export const createChat = (endpoint: Endpoint, parameters: object = {}): Chat => {
  const ways = new Map<string, number>() // the one to begin with, by model
  return async (question, signal) => {
    for (let way = ways.get(question.model) ?? 0; ; way++) {
      try {
        const answer = await endpoint.post('chat/completions', bodyOf(question, way, parameters), signal)
        const reply = read(answer, question)
        // One that takes the format and minds it not is asked more plainly the next time.
        ways.set(question.model, reply.kind === 'value' ? way : Math.min(way + 1, WAYS.length - 1))
        return reply
      } catch (error) {
        if (!(error instanceof Refused) || way === WAYS.length - 1) throw error
      }
    }
  }
}
