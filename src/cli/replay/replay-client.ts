import type { Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import type { Client } from '../client/client-command.ts'
import type { ServerConnection } from '../client/connection.ts'
import { ClientError, EXIT } from '../client/exit-codes.ts'
import { safeLine } from '../client/terminal.ts'
import { type ClientScript, createClientScript, type ScriptedAnswer } from './client-script.ts'
import { compareJson, type JsonDifference } from './compare-json.ts'
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
  let answers: ScriptedAnswer[] = []
  let unanswered: string | undefined
  const answer = async ({ method }: Question): Promise<Json> => {
    const at = answers.findIndex(each => each.method === method)
    const [found] = at < 0 ? [] : answers.splice(at, 1)
    if (found) return found.result
    unanswered = method
    throw new ClientError(`the server asked ${method}, to which the recording has no answer`, EXIT.protocol)
  }
  const connection = await client.connect(source, { answer }, { capabilities: CAPABILITIES })
  const replayed: ReplayedCall[] = []
  for (const call of calls) {
    if (client.interrupted.reason) throw new ClientError('cancelled', EXIT.cancelled)
    const script = createClientScript(call)
    if ('why' in script) {
      replayed.push({ ...script, outcome: 'skipped' })
      continue
    }
    answers = [...script.answers]
    unanswered = undefined
    const result = await replayCall(connection, script, () => unanswered)
    replayed.push(result)
    if (!client.isJson) client.write(describe(result))
  }
  return report(client, replayed)
}

const replayCall = async (
  connection: ServerConnection,
  script: ClientScript,
  unanswered: () => string | undefined,
): Promise<ReplayedCall> => {
  const { title, method, params, expected, recordedMs } = script
  const begun = performance.now()
  const found = await connection.request(method, params, 'calling').then(
    result => ({ result: result.toValue() }),
    (error: unknown) => {
      if (!(error instanceof ClientError)) throw error
      if (error.code !== EXIT.protocol) throw error
      return { error: error.rpc, message: error.message }
    },
  )
  const ms = Math.round(performance.now() - begun)
  const asked = unanswered()
  if (asked !== undefined) {
    const difference = { path: '(question)', expected: '(none)', found: asked }
    return { title, outcome: 'different', differences: [difference], ms, recordedMs }
  }
  const differences = differencesOf(expected, found)
  return { title, outcome: differences.length === 0 ? 'same' : 'different', differences, ms, recordedMs }
}

const differencesOf = (
  expected: ClientScript['expected'],
  found:
    | { readonly result: unknown }
    | { readonly error: { readonly code: number } | undefined; readonly message: string },
): readonly JsonDifference[] => {
  if (expected.kind === 'unknown') return []
  if ('result' in found) {
    if (expected.kind === 'result') return compareJson(expected.result, found.result)
    return [{ path: '(end)', expected: `error ${expected.code}: ${expected.message}`, found: 'a result' }]
  }
  if (expected.kind === 'result') return [{ path: '(end)', expected: 'a result', found: found.message }]
  if (expected.code === found.error?.code) return []
  return [{ path: 'error.code', expected: String(expected.code), found: String(found.error?.code) }]
}

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
