import type { Recording } from '../../../admin/api/recorder.ts'
import type { MessagePair, ReadMessage } from './align.ts'
import { diffJson, type JsonDiff } from './diff.ts'
import {
  type ExplainContext,
  type ExplainedEnd,
  type Explanation,
  explainChange,
  type RuleReference,
} from './explain.ts'
import { compareHeaders, explainHeader, type HeaderChange } from './headers.ts'
import { formatJsonPath, type JsonPath } from './json-node.ts'
import { QUESTION_RULES } from './rules-for-questions.ts'
import { REQUEST_RULES } from './rules-for-requests.ts'
import { RESULT_RULES } from './rules-for-results.ts'

/** One sentence, and the changes that it explains. */
export interface ExplainedChanges extends Explanation {
  readonly number: number // from 1; the lines carry it
  readonly changes: readonly { readonly verb: string; readonly path: string }[]
}

/** A header, with the number of what explains its change. */
export interface NumberedHeader extends HeaderChange {
  readonly number?: number | undefined
}

/** What the gateway made of a message. */
export interface PairComparison {
  readonly diff: JsonDiff
  readonly numbers: readonly number[] // of each change of `diff`
  readonly headers: readonly NumberedHeader[]
  readonly explanations: readonly ExplainedChanges[]
}

/** The first rule that matches counts: the special ones come first. */
const RULES = [...QUESTION_RULES, ...REQUEST_RULES, ...RESULT_RULES]

/** Compares the messages of a pair; undefined if one is missing, was cut, or is no JSON. */
export const comparePair = (pair: MessagePair, recording: Recording): PairComparison | undefined => {
  const { client, server, flow } = pair
  const [from, to] = flow === 'toServer' ? [client, server] : [server, client]
  if (!from?.node || !to?.node) return undefined
  const diff = diffJson(from.node, to.node, pair.moved)
  const context: ExplainContext = {
    flow,
    method: from.method ?? to.method ?? recording.method,
    server: server?.server,
    from: endOf(from, recording),
    to: endOf(to, recording),
    before: from.node,
    after: to.node,
  }
  const numbering = new Numbering()
  const headers = compareHeaders(from.headers, to.headers).map(header => {
    if (!header.isChanged) return header
    const verb = header.before === undefined ? 'added' : header.after === undefined ? 'removed' : 'changed'
    return { ...header, number: numbering.add(explainHeader(header, context), verb, `header ${header.name}`) }
  })
  const numbers = diff.changes.map(change =>
    numbering.add(explainChange(change, context, RULES), change.kind, pathText(change.path, change.to, change.kind)),
  )
  return { diff, numbers, headers, explanations: numbering.all }
}

/** Changes with the same reason have one number. */
class Numbering {
  readonly all: {
    number: number
    text: string
    reference?: RuleReference | undefined
    changes: { verb: string; path: string }[]
  }[] = []

  add({ text, reference }: Explanation, verb: string, path: string): number {
    const known = this.all.find(each => each.text === text)
    const entry = known ?? { number: this.all.length + 1, text, reference, changes: [] }
    if (!known) this.all.push(entry)
    entry.changes.push({ verb, path })
    return entry.number
  }
}

const pathText = (path: JsonPath, to: JsonPath | undefined, kind: string): string =>
  kind === 'moved' && to ? `${formatJsonPath(path)} → ${formatJsonPath(to)}` : formatJsonPath(path) || 'the message'

const endOf = ({ side, server, role }: ReadMessage, recording: Recording): ExplainedEnd => {
  const known = side === 'client' ? recording : recording.servers.find(({ name }) => name === server)
  return { role, revision: known?.revision, dialect: known?.dialect }
}
