import { hash } from 'node:crypto'
import type { Caller, Exchange } from '../protocol/exchange.ts'
import { BoundedCache } from '../std/bounded-cache.ts'
import type { AuditLine } from '../telemetry/audit-log.ts'
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

/** What the part of a line about the caller depends on. */
interface CallerFacts {
  readonly principal: string | undefined
  readonly workspace: string
  readonly revision: string
  readonly info: Json | undefined
  readonly address: string | undefined
  readonly dialect: string
}

const TIME_AT = '{"time":"'
const NOTHING = Buffer.alloc(0)
const MOST_BYTES_EACH = 3 // of a UTF-16 unit in UTF-8
const MOST_DIGITS = 20
const NAMES = {
  ms: Buffer.from(',"ms":'),
  bytesIn: Buffer.from(',"bytesIn":'),
  bytesOut: Buffer.from(',"bytesOut":'),
  id: Buffer.from(',"id":'),
}
const FIXED_BYTES = 3 * MOST_DIGITS + LONGEST_ID + 64 // numbers, id, and their names

/**
 * Writes the lines of requests, of which it holds one at a time: the one that `make` was called for last. Every call has a
 * line, so it is copied from few pieces: what callers and calls have in common is remembered as bytes, and compared with the
 * line before first, because a key to look it up costs as much as the rest of a line.
 */
export class AuditLines implements AuditLine {
  readonly #labels: SessionLabels
  readonly #callers = new Map<string, Buffer>()
  readonly #calls = new Map<string, Buffer>()
  readonly #outcomes = new Map<string, Buffer>()
  readonly #id = Buffer.alloc(LONGEST_ID)
  #idBytes = 0
  #ms = 0
  #bytesIn = 0
  #bytesOut = 0
  #head: Buffer = NOTHING // the time and the parts below, in one piece: most lines begin like the one before
  #callerPart: Buffer = NOTHING
  #callPart: Buffer = NOTHING
  #outcomePart: Buffer = NOTHING
  #endPart: Buffer = NOTHING
  #rest = '' // what few lines have
  #lastCaller: CallerFacts | undefined
  #lastCallerPart: Buffer = NOTHING
  #lastMethod = ''
  #lastTarget: string | undefined
  #lastServer: string | undefined
  #lastCallPart: Buffer | undefined
  #lastReplica: string | undefined
  #now = 0

  constructor(labels: SessionLabels) {
    this.#labels = labels
  }

  /** Makes the line of a request. */
  make(request: AuditedRequest): this {
    const { exchange, traceId, replica } = request
    const { session } = exchange.caller
    const id = exchange.origin?.id
    this.#ms = request.ms
    this.#bytesIn = request.bytesIn
    this.#bytesOut = request.bytesOut
    this.#idBytes = id && id.size <= LONGEST_ID ? id.copyTo(this.#id, 0) : 0
    this.#setHead(this.#partOfCaller(request), this.#partOfCall(request), this.#partOfOutcome(request.outcome))
    this.#rest = session === undefined ? '' : `,"session":"${this.#labels.of(session)}"`
    if (traceId !== undefined) this.#rest += `,"trace":"${traceId}"`
    this.#rest += contentText(request)
    if (replica !== this.#lastReplica) this.#endPart = Buffer.from(`,"replica":"${replica}"}\n`)
    this.#lastReplica = replica
    return this
  }

  get mostBytes(): number {
    return this.#head.length + FIXED_BYTES + this.#rest.length * MOST_BYTES_EACH + this.#endPart.length
  }

  writeTo(bytes: Buffer, start: number): number {
    const tenths = Math.round(this.#ms * 10)
    let at = copy(this.#head, bytes, start)
    at = writeNumber(Math.floor(tenths / 10), bytes, copy(NAMES.ms, bytes, at))
    bytes[at++] = POINT
    at = writeNumber(tenths % 10, bytes, at)
    at = writeNumber(this.#bytesIn, bytes, copy(NAMES.bytesIn, bytes, at))
    at = writeNumber(this.#bytesOut, bytes, copy(NAMES.bytesOut, bytes, at))
    if (this.#idBytes > 0) at = copy(this.#id, bytes, copy(NAMES.id, bytes, at), this.#idBytes)
    if (this.#rest !== '') at += bytes.write(this.#rest, at)
    return copy(this.#endPart, bytes, at)
  }

  #setHead(callerPart: Buffer, callPart: Buffer, outcomePart: Buffer): void {
    const now = Date.now()
    const isSame = callerPart === this.#callerPart && callPart === this.#callPart && outcomePart === this.#outcomePart
    if (isSame && now === this.#now) return
    const time = Buffer.from(`${TIME_AT}${new Date(now).toISOString()}`)
    if (isSame) this.#head.set(time)
    else this.#head = Buffer.concat([time, callerPart, callPart, outcomePart])
    this.#callerPart = callerPart
    this.#callPart = callPart
    this.#outcomePart = outcomePart
    this.#now = now
  }

  /** The part about the caller, from the quote that ends the time. */
  #partOfCaller({ exchange: { caller, origin }, dialect }: AuditedRequest): Buffer {
    const { principal, workspace, revision, info } = caller
    const last = this.#lastCaller
    const address = origin?.address
    const isLast =
      last !== undefined &&
      last.principal === principal &&
      last.workspace === workspace &&
      last.address === address &&
      last.dialect === dialect &&
      last.revision === revision &&
      (info === undefined ? last.info === undefined : last.info !== undefined && info.isSameText(last.info))
    if (isLast) return this.#lastCallerPart
    const part = this.#findCaller({ principal, workspace, revision, info, address, dialect })
    if (info !== undefined && info.size > LONGEST_INFO) return part
    this.#lastCaller = { principal, workspace, revision, info: info?.compact(), address, dialect }
    this.#lastCallerPart = part
    return part
  }

  #findCaller({ principal, workspace, revision, info, address, dialect }: CallerFacts): Buffer {
    const about = info === undefined ? '' : info.size <= LONGEST_INFO ? info.toString() : undefined
    const key = about === undefined ? undefined : keyOf(principal, workspace, address, dialect, revision, about)
    const known = key === undefined ? undefined : this.#callers.get(key)
    if (known !== undefined) return known
    const who = principal === undefined ? 'null' : quote(principal)
    const from = address === undefined ? '' : `,"address":${quote(address)}`
    const part = `","event":"request","principal":${who}${clientText(info)}${from},"workspace":${quote(workspace)},"dialect":"${dialect}","revision":"${revision}"`
    return key === undefined ? Buffer.from(part) : remember(this.#callers, key, part)
  }

  /** A method that is not one of the specification may be of any length: it is cut before it is remembered. */
  #partOfCall({ exchange: { method }, target, server }: AuditedRequest): Buffer {
    const part = this.#lastCallPart
    const isLast = method === this.#lastMethod && target?.name === this.#lastTarget && server === this.#lastServer
    if (part !== undefined && isLast) return part
    const shown = method.length > LONGEST_METHOD ? auditText(method) : method
    this.#lastMethod = shown
    this.#lastTarget = target?.name
    this.#lastServer = server
    this.#lastCallPart = this.#findCall(shown, target, server)
    return this.#lastCallPart
  }

  #findCall(method: string, target: RequestTarget | undefined, server: string | undefined): Buffer {
    const key = keyOf(method, target?.kind, target?.name, server)
    const known = this.#calls.get(key)
    if (known !== undefined) return known
    const named = target ? `,"${target.kind}":${quote(target.name)}` : ''
    const part = `,"method":${quote(method)}${named}${server === undefined ? '' : `,"server":${quote(server)}`}`
    return remember(this.#calls, key, part)
  }

  #partOfOutcome({ outcome, code, reason }: RequestOutcome): Buffer {
    const key = code === undefined && reason === undefined ? outcome : keyOf(outcome, String(code), reason)
    const known = this.#outcomes.get(key)
    if (known !== undefined) return known
    const numbered = code === undefined ? '' : `,"code":${code}`
    const explained = reason === undefined ? '' : `,"reason":"${reason}"`
    return remember(this.#outcomes, key, `,"outcome":"${outcome}"${numbered}${explained}`)
  }
}

/** One text for several, which no other ones have: clients choose some of them. */
const keyOf = (...parts: readonly (string | undefined)[]): string =>
  parts.map(part => (part === undefined ? '-' : `${part.length}:${part}`)).join(' ')

const COPIED_AS_A_WHOLE = 48 // bytes: below, a loop takes less time than a call

const copy = (part: Buffer, target: Buffer, at: number, length = part.length): number => {
  if (length >= COPIED_AS_A_WHOLE) part.copy(target, at, 0, length)
  else for (let i = 0; i < length; i++) target[at + i] = part[i] as number
  return at + length
}

const POINT = 0x2e
const ZERO = 0x30
const LARGEST_INT32 = 2 ** 31 - 1

/** Writes a whole number in decimal digits, and returns where it ends. */
const writeNumber = (number: number, target: Buffer, at: number): number => {
  if (number > LARGEST_INT32) return at + target.write(String(number), at, 'latin1')
  let digits = 1
  for (let rest = number; rest > 9; rest = (rest / 10) | 0) digits++
  let rest = number | 0
  for (let place = at + digits - 1; place >= at; place--) {
    target[place] = ZERO + (rest % 10)
    rest = (rest / 10) | 0
  }
  return at + digits
}

/** Bytes of their own memory: those of a pool would keep others in memory. */
const remember = (known: Map<string, Buffer>, key: string, part: string): Buffer => {
  if (known.size >= MOST_REMEMBERED) known.clear()
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(part))
  bytes.write(part)
  known.set(key, bytes)
  return bytes
}

/** A JSON string; most need no escapes. */
const quote = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text))

const clientText = (info: Json | undefined): string => {
  const { name, version } = describeClient(info)
  return name === undefined ? '' : `,"client":${JSON.stringify({ name, version })}`
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
