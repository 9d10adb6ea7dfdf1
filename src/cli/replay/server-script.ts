import type { RecordedMessage, RecordedServer } from '../../protocol/recording.ts'
import { isModern, isRevision, NEWEST_LEGACY, type Revision } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import { UsageError } from '../usage.ts'
import { isSameJson } from './compare-json.ts'
import { parseMessage, type RecordedCall } from './recording-file.ts'

/** One request that a server got, and everything it sent until it answered. */
export interface ServerScript {
  readonly method: string
  readonly params: unknown
  readonly steps: readonly ServerStep[]
}

/** What the server sends: a notification, a question that waits for an answer, or the end. */
export interface ServerStep {
  readonly kind: 'notification' | 'question' | 'result' | 'error'
  readonly method: string
  readonly message: Json
}

/** The recorded server: how it speaks, and its answers. */
export interface RecordedServerScripts {
  readonly name: string
  readonly revision: Revision
  readonly scripts: readonly ServerScript[]
}

/** The scripts of the server of that name; without a name, of the only one. */
export const createServerScripts = (
  calls: readonly RecordedCall[],
  wanted: string | undefined,
): RecordedServerScripts => {
  const servers = new Map<string, RecordedServer>()
  for (const { all, servers: reached } of calls.flat())
    for (const server of reached)
      if (all.some(message => message.server === server.name)) servers.set(server.name, server)
  const names = [...servers.keys()]
  const name = wanted ?? (names.length === 1 ? names[0] : undefined)
  const server = name === undefined ? undefined : servers.get(name)
  if (!server || name === undefined) {
    const known = names.length === 0 ? 'the recording has no messages of a server' : `recorded are ${names.join(', ')}`
    throw new UsageError(`choose a server with --server NAME: ${known}`)
  }
  const messages = calls.map(call => call.flatMap(({ all }) => all.filter(message => message.server === name)))
  const scripts = messages.flatMap(scriptsOf)
  return { name, revision: revisionOf(server, scripts), scripts }
}

/** A server inside the gateway asks with requests although it speaks the modern revision: over a pipe only legacy ones do. */
const revisionOf = ({ revision }: RecordedServer, scripts: readonly ServerScript[]): Revision => {
  const asks = scripts.some(({ steps }) => steps.some(({ kind }) => kind === 'question'))
  if (!isRevision(revision)) return NEWEST_LEGACY
  return isModern(revision) && asks ? NEWEST_LEGACY : revision
}

/** Every request begins a script, which ends with the response. */
const scriptsOf = (messages: readonly RecordedMessage[]): ServerScript[] => {
  const scripts: { method: string; params: unknown; steps: ServerStep[] }[] = []
  for (const recorded of messages) {
    const message = parseMessage(recorded)
    const { kind, direction, method = '' } = recorded
    if (!message) continue
    if (direction === 'out' && kind === 'request')
      scripts.push({ method, params: message.get('params')?.toValue() ?? {}, steps: [] })
    else if (direction === 'in' && kind !== 'request' && kind !== 'answer')
      scripts.at(-1)?.steps.push({ kind, method, message })
  }
  return scripts.filter(({ steps }) => steps.some(({ kind }) => kind === 'result' || kind === 'error'))
}

/** Chooses the recorded answer to a request: one with the same params that was not used yet, else the last such one. */
export class ScriptChooser {
  readonly #scripts: readonly ServerScript[]
  readonly #used = new Set<ServerScript>()

  constructor(scripts: readonly ServerScript[]) {
    this.#scripts = scripts
  }

  choose(method: string, params: unknown): ServerScript | undefined {
    const matching = this.#scripts.filter(script => script.method === method && isSameJson(script.params, params))
    const chosen = matching.find(script => !this.#used.has(script)) ?? matching.at(-1)
    if (chosen) this.#used.add(chosen)
    return chosen
  }
}
