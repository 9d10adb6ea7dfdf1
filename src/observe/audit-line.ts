import { hash } from 'node:crypto'
import type { Caller, Exchange } from '../protocol/exchange.ts'
import { BoundedCache } from '../std/bounded-cache.ts'
import { hideSecrets } from '../telemetry/log.ts'
import type { Json } from '../wire/json/json.ts'
import { auditText, type RequestOutcome, type RequestTarget } from './request-facts.ts'

/** What is written about one request. */
export interface AuditedRequest {
  readonly exchange: Exchange
  readonly dialect: string
  readonly target: RequestTarget | undefined
  readonly server: string | undefined
  readonly outcome: RequestOutcome
  readonly ms: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly traceId: string | undefined
  readonly replica: string | undefined
  readonly arguments?: string | undefined // JSON; only if the configuration asks for them
  readonly result?: string | undefined // JSON
}

const LONGEST_METHOD = 64
const LONGEST_ID = 128 // bytes
const PLAIN = /^[\w ./:@-]*$/

/** Writes the lines of requests. By hand, because every call writes one: a third of the time that `JSON.stringify` takes. */
export class AuditLines {
  readonly #labels: SessionLabels
  readonly #clients = new WeakMap<Json, string>() // by `clientInfo`: a session has one such value for its whole life
  #now = 0
  #time = ''

  constructor(labels: SessionLabels) {
    this.#labels = labels
  }

  write(request: AuditedRequest): string {
    const { exchange, dialect, target, server, outcome, ms, traceId, replica } = request
    const { method, caller, origin } = exchange
    const { principal, workspace, session, revision } = caller
    const shownMethod = method.length > LONGEST_METHOD ? auditText(method) : method
    let line = `{"time":"${this.#isoTime()}","event":"request","principal":${principal === undefined ? 'null' : quote(principal)}`
    if (caller.info) line += this.#client(caller.info)
    if (origin?.address !== undefined) line += `,"address":${quote(origin.address)}`
    line += `,"workspace":${quote(workspace)},"dialect":"${dialect}","revision":"${revision}","method":${quote(shownMethod)}`
    if (target) line += `,"${target.kind}":${quote(target.name)}`
    if (server !== undefined) line += `,"server":${quote(server)}`
    line += `,"outcome":"${outcome.outcome}"`
    if (outcome.code !== undefined) line += `,"code":${outcome.code}`
    if (outcome.reason !== undefined) line += `,"reason":"${outcome.reason}"`
    line += `,"ms":${Math.round(ms * 10) / 10},"bytesIn":${request.bytesIn},"bytesOut":${request.bytesOut}`
    if (session !== undefined) line += `,"session":"${this.#labels.of(session)}"`
    const id = origin?.id
    if (id && id.size <= LONGEST_ID) line += `,"id":${id.toString()}`
    if (traceId !== undefined) line += `,"trace":"${traceId}"`
    if (replica !== undefined) line += `,"replica":${quote(replica)}`
    if (request.arguments !== undefined) line += `,"arguments":${request.arguments}`
    if (request.result !== undefined) line += `,"result":${request.result}`
    return `${line}}\n`
  }

  #isoTime(): string {
    const now = Date.now()
    if (now !== this.#now) {
      this.#now = now
      this.#time = new Date(now).toISOString()
    }
    return this.#time
  }

  #client(info: Json): string {
    const known = this.#clients.get(info)
    if (known !== undefined) return known
    const { name, version } = describeClient(info)
    const part = name === undefined ? '' : `,"client":${JSON.stringify({ name, version })}`
    this.#clients.set(info, part)
    return part
  }
}

/** A JSON string; most need no escapes. */
const quote = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text))

/** The name and version of a client, as it gives them. */
export const describeClient = (info: Caller['info']): { readonly name?: string; readonly version?: string } => {
  const [name, version] = ['name', 'version'].map(member => info?.get(member)?.asString())
  if (name === undefined) return {}
  return { name: auditText(name), ...(version !== undefined && { version: auditText(version) }) }
}

const LABEL_CHARACTERS = 16
const MOST_LABELS = 10_000
const HOUR = 3_600_000

/** Short names of sessions. The id of a session is a credential where callers need no token, so it is not shown. */
export class SessionLabels {
  readonly #known = new BoundedCache<string>(MOST_LABELS, HOUR)

  of(session: string): string {
    const known = this.#known.get(session)
    if (known !== undefined) return known
    const label = hash('sha256', session, 'base64url').slice(0, LABEL_CHARACTERS)
    this.#known.set(session, label)
    return label
  }
}

const LONGEST_CONTENT = 8192 // characters of arguments, and of a result
const SECRET_NAME = /pass(word|wd|phrase)|secret|token|api_?key|authorization|cookie|credential|private_?key/i

/** Arguments or a result as JSON, without members whose names say that they are secrets; of a long text its start, as a string. */
export const auditedContent = (value: Json | undefined): string | undefined => {
  if (!value) return undefined
  const hide = (key: string, member: unknown): unknown => (SECRET_NAME.test(key) ? '[hidden]' : member)
  const text = hideSecrets(JSON.stringify(value.toValue(), hide))
  return text.length <= LONGEST_CONTENT ? text : JSON.stringify(`${text.slice(0, LONGEST_CONTENT)}…`)
}
