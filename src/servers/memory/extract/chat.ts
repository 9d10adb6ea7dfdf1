import { membersOf } from '../input-checks.ts'
import { tokensIn } from './budget.ts'
import { type Endpoint, RejectedRequest } from './endpoint.ts'

/** One question to a model, and the schema of its answer. */
export interface ChatQuestion {
  readonly model: string
  readonly system: string
  readonly user: string
  readonly name: string
  readonly schema: Readonly<Record<string, unknown>>
}

/** The answer: unchecked JSON, or why there is none. It costs tokens either way. */
export type ChatReply =
  | { readonly kind: 'value'; readonly value: unknown; readonly tokens: number }
  | { readonly kind: 'problem'; readonly problem: string; readonly tokens: number }

export type Chat = (question: ChatQuestion, signal?: AbortSignal) => Promise<ChatReply>

/** The ways to ask for JSON, the best first; if the endpoint rejects one, the next is tried. */
const FORMATS: readonly ((question: ChatQuestion) => Readonly<Record<string, unknown>>)[] = [
  ({ name, schema }) => ({ response_format: { type: 'json_schema', json_schema: { name, strict: true, schema } } }),
  () => ({ response_format: { type: 'json_object' } }),
  () => ({}),
]

const bodyOf = (question: ChatQuestion, format: number): object => {
  const { model, system, user, schema } = question
  const schemaText =
    format === 0 ? '' : `\n\nAnswer with one JSON object and nothing else. Its schema: ${JSON.stringify(schema)}`
  const messages = [
    { role: 'system', content: system + schemaText },
    { role: 'user', content: user },
  ]
  return { model, messages, ...FORMATS[format]?.(question) }
}

const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map(part => String(membersOf(part).text ?? '')).join('') : ''
}

/** The JSON in a text, whatever text the model put around it. */
export const parseModelJson = (text: string): unknown => {
  const [from, to] = [text.indexOf('{'), text.lastIndexOf('}')]
  for (const candidate of [text, text.slice(from, to + 1)]) {
    try {
      return JSON.parse(candidate)
    } catch {
      // not JSON: the next candidate is tried
    }
  }
  return undefined
}

const tokensOf = (usage: unknown, estimate: () => number): number => {
  const { total_tokens: total, prompt_tokens: prompt, completion_tokens: completion } = membersOf(usage)
  const counted = typeof total === 'number' ? total : Number(prompt ?? Number.NaN) + Number(completion ?? 0)
  return Number.isFinite(counted) && counted > 0 ? Math.ceil(counted) : estimate()
}

const readReply = (answer: unknown, { system, user }: ChatQuestion): ChatReply => {
  const { choices, usage } = membersOf(answer)
  const { message, finish_reason: finish } = membersOf(Array.isArray(choices) ? choices[0] : undefined)
  const { content, refusal } = membersOf(message)
  const text = textOf(content)
  const tokens = tokensOf(usage, () => tokensIn(system + user + text))
  const value = parseModelJson(text)
  if (value !== undefined) return { kind: 'value', value, tokens }
  if (typeof refusal === 'string') return { kind: 'problem', problem: 'The model declined to answer.', tokens }
  if (finish === 'length') return { kind: 'problem', problem: 'The answer of the model was cut off.', tokens }
  return { kind: 'problem', problem: 'The model answered with something that is not JSON.', tokens }
}

/** Asks a model for JSON, in the best format that the endpoint accepts. */
export const createChat = (endpoint: Endpoint): Chat => {
  const formats = new Map<string, number>() // the first to try, by model
  return async (question, signal) => {
    for (let format = formats.get(question.model) ?? 0; ; format++) {
      try {
        const answer = await endpoint.post('chat/completions', bodyOf(question, format), signal)
        const reply = readReply(answer, question)
        // An endpoint that accepts a format but ignores it is asked in the next one from then on.
        formats.set(question.model, reply.kind === 'value' ? format : Math.min(format + 1, FORMATS.length - 1))
        return reply
      } catch (error) {
        if (!(error instanceof RejectedRequest) || format === FORMATS.length - 1) throw error
      }
    }
  }
}
