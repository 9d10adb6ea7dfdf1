import { type RpcError, RpcFailure } from '../../protocol/errors.ts'
import type { Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import type { Client } from '../client/client-command.ts'
import type { ServerConnection } from '../client/connection.ts'
import { ClientError, EXIT } from '../client/exit-codes.ts'
import { safeLine } from '../client/terminal.ts'
import { type ClientScript, createClientScript, type ScriptedAnswer, type ScriptedQuestion } from './client-script.ts'
import { compareJson, isSameJson, type JsonDifference } from './compare-json.ts'
import type { RecordedCall } from './recording-file.ts'

/** What came of one call. */
interface ReplayedCall {
  readonly title: string
  readonly outcome: 'same' | 'different' | 'skipped'
  readonly why?: string | undefined // it was skipped
  readonly differences?: readonly JsonDifference[] | undefined
  readonly ms?: number | undefined
  readonly recordedMs?: number | undefined
}

const CAPABILITIES = Json.of({ elicitation: { form: {}, url: {} }, sampling: {}, roots: {} })
const DIFFERENT = 1

/** Sends recorded calls to another server and reports where its answers differ. */
export const replayAsClient = async (client: Client, calls: readonly RecordedCall[]): Promise<number> => {
  const [source, ...others] = client.sources.all
  if (!source || others.length > 0)
    throw new ClientError(
      'several servers are configured: name a URL, a command after "--", or start the daemon',
      EXIT.usage,
    )
  let asked = new AskedQuestions()
  const connection = await client.connect(
    source,
    { answer: async question => asked.answer(question) },
    { capabilities: CAPABILITIES },
  )
  const replayed: ReplayedCall[] = []
  for (const call of calls) {
    if (client.interrupted.reason) throw new ClientError('cancelled', EXIT.cancelled)
    const script = createClientScript(call)
    if ('why' in script) {
      replayed.push({ ...script, outcome: 'skipped' })
      continue
    }
    asked = new AskedQuestions(script.answers)
    const result = await replayCall(connection, script, asked)
    replayed.push(result)
    if (!client.isJson) client.write(describe(result))
  }
  return report(client, replayed)
}

/** Answers the questions of one call as they were answered, and keeps the first that was not. */
class AskedQuestions {
  unanswered: ScriptedQuestion | undefined
  readonly #answers: ScriptedAnswer[]

  constructor(answers: readonly ScriptedAnswer[] = []) {
    this.#answers = [...answers]
  }

  answer({ method, params }: Question): Json {
    const at = this.#answers.findIndex(each => each.method === method)
    const [found] = at < 0 ? [] : this.#answers.splice(at, 1)
    if (found && 'result' in found) return found.result
    if (found) throw new RpcFailure(found.error)
    this.unanswered ??= { method, message: params.get('message')?.asString() }
    throw new ClientError(`the server asked ${method}, to which the recording has no answer`, EXIT.protocol)
  }
}

const replayCall = async (
  connection: ServerConnection,
  script: ClientScript,
  asked: AskedQuestions,
): Promise<ReplayedCall> => {
  const { title, method, params, recordedMs } = script
  const begun = performance.now()
  const found = await connection.request(method, params, 'calling').then(
    (result): FoundEnd => ({ kind: 'result', result: result.toValue() }),
    (error: unknown): FoundEnd => {
      if (asked.unanswered) return { kind: 'question', question: asked.unanswered }
      if (!(error instanceof ClientError) || error.code === EXIT.cancelled) throw error
      return { kind: 'error', error }
    },
  )
  const ms = Math.round(performance.now() - begun)
  const differences = differencesOf(script, found)
  if (differences.length > 0 && found.kind === 'error' && isTargetGone(found.error, connection.name)) throw found.error
  return { title, outcome: differences.length === 0 ? 'same' : 'different', differences, ms, recordedMs }
}

/** How a call ends now. */
type FoundEnd =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'error'; readonly error: ClientError }
  | { readonly kind: 'question'; readonly question: ScriptedQuestion }

const GONE: ReadonlySet<string | undefined> = new Set(['upstream_unreachable', 'upstream_auth'])

/** Whether the target itself cannot be reached. An error that a gateway passes on names the server behind it instead. */
const isTargetGone = ({ rpc }: ClientError, target: string): boolean => {
  const server = rpc?.data?.get('upstream')?.asString()
  return GONE.has(reasonOf(rpc)) && (server === undefined || server === target)
}

const reasonOf = (error: RpcError | undefined): string | undefined => error?.data?.get('reason')?.asString()

const differencesOf = ({ expected, unanswered }: ClientScript, found: FoundEnd): readonly JsonDifference[] => {
  if (found.kind === 'question') {
    const { question } = found
    const isExpected = ({ method, message }: ScriptedQuestion): boolean =>
      method === question.method && isSameJson(message, question.message)
    if (unanswered.some(isExpected)) return []
    return [{ path: '(question)', expected: namesOf(unanswered) || '(none)', found: nameOf(question) }]
  }
  if (expected.kind === 'unknown') return []
  const foundEnd = found.kind === 'error' ? firstLine(found.error.message) : 'a result'
  if (expected.kind === 'question')
    return [{ path: '(end)', expected: `the question ${namesOf(unanswered)}`, found: foundEnd }]
  if (expected.kind === 'result') {
    if (found.kind === 'result') return compareJson(expected.result, found.result)
    return [{ path: '(end)', expected: 'a result', found: foundEnd }]
  }
  const { error } = expected
  const { rpc } = found.kind === 'error' ? found.error : {}
  if (!rpc) return [{ path: '(end)', expected: `error ${error.code}: ${error.message}`, found: foundEnd }]
  return [
    ...compareMember('error.code', error.code, rpc.code),
    ...compareMember('error.data.reason', reasonOf(error), reasonOf(rpc)),
  ]
}

const compareMember = (path: string, expected: unknown, found: unknown): readonly JsonDifference[] =>
  expected === found ? [] : [{ path, expected: String(expected ?? '(absent)'), found: String(found ?? '(absent)') }]

const nameOf = ({ method, message }: ScriptedQuestion): string =>
  message === undefined ? method : `${method} ${JSON.stringify(message)}`

const namesOf = (questions: readonly ScriptedQuestion[]): string => questions.map(nameOf).join(' or ')

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

const describe = ({ title, outcome, why, differences = [], ms, recordedMs }: ReplayedCall): string => {
  const word = outcome === 'same' ? 'same' : outcome === 'skipped' ? 'skipped' : 'DIFFERENT'
  const times =
    ms === undefined ? '' : `  ${ms} ms${recordedMs === undefined ? '' : `, recorded ${Math.round(recordedMs)} ms`}`
  const rows = differences.map(({ path, expected, found }) => `    ${path}: expected ${expected}, found ${found}\n`)
  return `${word.padEnd(9)}  ${safeLine(title)}${why ? `: ${why}` : ''}${times}\n${rows.map(safeText).join('')}`
}

const safeText = (text: string): string => `${safeLine(text.trimEnd())}\n`

const report = ({ isJson, write }: Client, replayed: readonly ReplayedCall[]): number => {
  const count = (outcome: ReplayedCall['outcome']): number => replayed.filter(each => each.outcome === outcome).length
  const [same, different, skipped] = [count('same'), count('different'), count('skipped')]
  if (isJson) write(`${JSON.stringify({ same, different, skipped, calls: replayed })}\n`)
  else {
    for (const each of replayed) if (each.outcome === 'skipped') write(describe(each))
    write(`${same} the same, ${different} different, ${skipped} skipped\n`)
  }
  return different > 0 ? DIFFERENT : EXIT.ok
}
