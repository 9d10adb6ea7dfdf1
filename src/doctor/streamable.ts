import { NOTIFICATIONS } from '../protocol/notifications.ts'
import { isRevision, transportRulesOf } from '../protocol/revisions.ts'
import { Json, type Plain } from '../wire/json/json.ts'
import type { Deviations } from './deviations.ts'
import { describeReply, type ExaminedServer, quote } from './examined-server.ts'
import { FOREIGN, type PostAnswer, type ProbeTarget, postMessage } from './http-post.ts'
import { tryHttp } from './http-send.ts'

const SESSION = 'mcp-session-id'
const VERSION = 'mcp-protocol-version'
const STREAM_MS = 1000 // an open stream sends its head at once
const VISIBLE_ASCII = /^[\x21-\x7e]+$/

/** The params of `initialize`. */
export const handshakeParams = (revision: string, identity: Json): Record<string, Plain> => ({
  protocolVersion: revision,
  capabilities: {},
  clientInfo: identity,
})

/** A legacy server over Streamable HTTP: opened with `initialize`, or the answer that shows why it is none. */
export const openStreamable = async (
  target: ProbeTarget,
  revision: string,
  identity: Json,
  deviations: Deviations,
): Promise<{ readonly session?: ExaminedSession; readonly answer: PostAnswer }> => {
  const where = `Streamable HTTP ${revision}`
  const message = { id: 0, method: 'initialize', params: Json.of(handshakeParams(revision, identity)) }
  const answer = await postMessage(target, message, {}, deviations, where)
  const { reply } = answer
  if (reply.kind !== 'result') return { answer }
  const agreed = reply.result.get('protocolVersion')?.asString() ?? revision
  return { session: new ExaminedSession(target, agreed, answer, deviations), answer }
}

/** One session with a legacy server. */
export class ExaminedSession implements ExaminedServer {
  readonly transport = 'Streamable HTTP' as const
  readonly revision: string
  readonly where: string
  readonly opening: Json
  readonly openingMs: number
  readonly sessionId: string | undefined
  readonly #target: ProbeTarget
  readonly #deviations: Deviations
  #lastId = 0

  constructor(target: ProbeTarget, revision: string, { reply, headers }: PostAnswer, deviations: Deviations) {
    if (reply.kind !== 'result') throw new Error('a session needs the result of initialize')
    this.#target = target
    this.#deviations = deviations
    this.revision = revision
    this.where = `Streamable HTTP ${revision}`
    this.opening = reply.result
    this.openingMs = reply.ms
    const id = headers[SESSION]
    this.sessionId = typeof id === 'string' ? id : undefined
  }

  get hasSession(): boolean {
    return this.sessionId !== undefined
  }

  async request(method: string, params: Record<string, Plain> = {}): Promise<PostAnswer['reply']> {
    return (await this.#post(method, params)).reply
  }

  /** Sends `notifications/initialized`, which ends the handshake. */
  async confirm(): Promise<void> {
    const message = { method: NOTIFICATIONS.initialized }
    const { status, body } = await postMessage(this.#target, message, this.#headers(), this.#deviations, this.where)
    if (status !== 202) this.#add('notification-accepted', `answered ${status}`)
    else if (body.length > 0) this.#add('notification-accepted', `answered 202 with the body ${quote(body.toString())}`)
  }

  /** Tries what only HTTP has: streams, headers, sessions. The session cannot be used afterwards. */
  async checkTransport(): Promise<void> {
    await this.#checkGet()
    await this.#checkRejections()
    if (this.sessionId !== undefined) await this.#checkSession(this.sessionId)
  }

  async close(): Promise<void> {
    if (this.sessionId !== undefined) await this.#delete()
  }

  async #checkGet(): Promise<void> {
    const headers = { ...this.#target.headers, ...this.#headers(), accept: 'text/event-stream' }
    const { status, mediaType, body } = await tryHttp(this.#target.url, STREAM_MS, {
      method: 'GET',
      headers,
      onEvent: () => true,
    })
    const isStream = status === 200 && mediaType === 'text/event-stream'
    if (status === 0) this.#add('get-stream', body.toString())
    else if (!isStream && status !== 405)
      this.#add('get-stream', `answered ${status}${mediaType ? ` ${mediaType}` : ''}`)
  }

  async #checkRejections(): Promise<void> {
    const foreign = await this.#post('ping', {}, FOREIGN)
    if (foreign.status !== 403) this.#add('origin', `answered ${describeReply(foreign.reply)}`)
    const invalid = await postMessage(
      this.#target,
      Buffer.from('{"jsonrpc":'),
      this.#headers(),
      this.#deviations,
      this.where,
    )
    if (invalid.status !== 400) this.#add('parse-error', `answered ${describeReply(invalid.reply)}`)
    if (!isRevision(this.revision) || !transportRulesOf(this.revision).versionHeader) return
    const unknown = await this.#post('ping', {}, { [VERSION]: '1999-01-01' })
    if (unknown.status !== 400) this.#add('version-header', `answered ${describeReply(unknown.reply)}`)
  }

  async #checkSession(id: string): Promise<void> {
    if (!VISIBLE_ASCII.test(id)) this.#add('session-id', `the id was ${quote(id)}`)
    const without = await this.#post('ping', {}, { [SESSION]: undefined })
    if (without.status !== 400) this.#add('session-required', `answered ${describeReply(without.reply)}`)
    const ended = await this.#delete()
    const isEnded = ended >= 200 && ended < 300
    const later = await this.#post('ping', {}, isEnded ? {} : { [SESSION]: `${id.slice(0, -1)}0x` })
    const what = isEnded ? 'after DELETE' : 'with an unknown id'
    if (later.status !== 404) this.#add('session-unknown', `${what} it answered ${describeReply(later.reply)}`)
  }

  async #delete(): Promise<number> {
    const headers = { ...this.#target.headers, ...this.#headers() }
    return (await tryHttp(this.#target.url, this.#target.timeoutMs, { method: 'DELETE', headers })).status
  }

  #post(
    method: string,
    params: Record<string, Plain>,
    change: Record<string, string | undefined> = {},
  ): Promise<PostAnswer> {
    const message = { id: ++this.#lastId, method, params: Json.of(params) }
    return postMessage(this.#target, message, this.#headers(change), this.#deviations, this.where)
  }

  #headers(change: Record<string, string | undefined> = {}): Record<string, string> {
    const needsVersion = isRevision(this.revision) && transportRulesOf(this.revision).versionHeader
    const all = { [SESSION]: this.sessionId, [VERSION]: needsVersion ? this.revision : undefined, ...change }
    return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))
  }

  #add(rule: Parameters<Deviations['add']>[0], seen: string): void {
    this.#deviations.add(rule, this.where, seen)
  }
}
