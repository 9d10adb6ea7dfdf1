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
  readonly replica: string
  readonly arguments?: string | undefined // JSON; only if the configuration asks for them
  readonly result?: string | undefined // JSON
}

const LONGEST_METHOD = 64
const LONGEST_ID = 128 // bytes
const LONGEST_INFO = 256 // bytes of a `clientInfo` that is remembered
const MOST_REMEMBERED = 1000
const PLAIN = /^[\w ./:@-]*$/

/**
 * Writes the lines of requests. Every call has one, so it is made of few pieces: what callers and calls have in common is
 * remembered.
 */
export class AuditLines {
  readonly #labels: SessionLabels
  readonly #callers = new Map<string, string>()
  readonly #calls = new Map<string, string>()
  #now = 0
  #time = ''

  constructor(labels: SessionLabels) {
    this.#labels = labels
  }

  write(request: AuditedRequest): string {
    const { exchange, outcome, traceId, replica } = request
    const { caller, origin } = exchange
    const { session } = caller
    const { id } = origin ?? {}
    const number = id && id.size <= LONGEST_ID ? `,"id":${id.toString()}` : ''
    const end = `${number},"replica":"${replica}"${contentText(request)}}\n`
    const part = session === undefined ? '' : `,"session":"${this.#labels.of(session)}"`
    const trace = traceId === undefined ? '' : `,"trace":"${traceId}"`
    const size = `,"ms":${tenths(request.ms)},"bytesIn":${request.bytesIn},"bytesOut":${request.bytesOut}`
    return `{"time":"${this.#isoTime()}${this.#caller(request)}${this.#call(request)}${outcomeText(outcome)}${size}${part}${trace}${end}`
  }

  #isoTime(): string {
    const now = Date.now()
    if (now !== this.#now) {
      this.#now = now
      this.#time = new Date(now).toISOString()
    }
    return this.#time
  }

  /** The part about the caller, from the quote that ends the time. */
  #caller({ exchange: { caller, origin }, dialect }: AuditedRequest): string {
    const { principal, workspace, revision, info } = caller
    const about = info === undefined ? '' : info.size <= LONGEST_INFO ? info.toString() : undefined
    const key = `${principal}\n${workspace}\n${origin?.address}\n${dialect}${revision}${about}`
    const known = about === undefined ? undefined : this.#callers.get(key)
    if (known !== undefined) return known
    const who = principal === undefined ? 'null' : quote(principal)
    const address = origin?.address === undefined ? '' : `,"address":${quote(origin.address)}`
    const part = `","event":"request","principal":${who}${clientText(info)}${address},"workspace":${quote(workspace)},"dialect":"${dialect}","revision":"${revision}"`
    if (about !== undefined) remember(this.#callers, key, part)
    return part
  }

  #call({ exchange: { method }, target, server }: AuditedRequest): string {
    const key = target ? `${method}\n${target.name}\n${server}` : `${method}\n${server}`
    const known = this.#calls.get(key)
    if (known !== undefined) return known
    const shown = method.length > LONGEST_METHOD ? auditText(method) : method
    const named = target ? `,"${target.kind}":${quote(target.name)}` : ''
    const part = `,"method":${quote(shown)}${named}${server === undefined ? '' : `,"server":${quote(server)}`}`
    remember(this.#calls, key, part)
    return part
  }
}

/** A flat copy: the parts that a string was made of stay in memory as long as the string. */
const remember = (known: Map<string, string>, key: string, part: string): void => {
  if (known.size >= MOST_REMEMBERED) known.clear()
  known.set(key, Buffer.from(part).toString())
}

/** A JSON string; most need no escapes. */
const quote = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text))

const clientText = (info: Json | undefined): string => {
  const { name, version } = describeClient(info)
  return name === undefined ? '' : `,"client":${JSON.stringify({ name, version })}`
}

/** Milliseconds with one digit after the point; writing a fraction takes long. */
const tenths = (ms: number): string => {
  const count = Math.round(ms * 10)
  return `${Math.floor(count / 10)}.${count % 10}`
}

const outcomeText = ({ outcome, code, reason }: RequestOutcome): string => {
  if (code === undefined && reason === undefined) return `,"outcome":"${outcome}"`
  return `,"outcome":"${outcome}"${code === undefined ? '' : `,"code":${code}`}${reason === undefined ? '' : `,"reason":"${reason}"`}`
}

const contentText = ({ arguments: given, result }: AuditedRequest): string =>
  `${given === undefined ? '' : `,"arguments":${given}`}${result === undefined ? '' : `,"result":${result}`}`

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
