import type { Ledger, NumberedCall, Outcome } from '../ledger.ts'

/** One client of one dialect. */
export interface ChaosClient {
  call(call: NumberedCall): Promise<Outcome>
  /** Whether a server may ask it something now; without this, yes. */
  canBeAsked?(): boolean
  /** Why its session does not answer any more; undefined: it does, or the client has none. */
  whyDead(): Promise<string | undefined>
  close(): Promise<void>
}

/** Where a client connects, and whom it tells what it saw. */
export interface ClientContext {
  readonly name: string
  readonly origin: string // of the gateway, or of the balancer before several
  readonly data: string // of a gateway on this machine, for `dragoman stdio`; its configuration is beside it
  readonly run: string // in the environment of every process of this run
  readonly workspace: string
  /** The name of a tool in that workspace. */
  readonly toolName: (tool: NumberedCall['tool']) => string
  readonly ledger: Ledger
}

export type Connect = (context: ClientContext) => Promise<ChaosClient>

/** A call that has not ended after this long is silent; longer than any lease. */
export const SILENT_MS = 30_000

export const urlOf = ({ origin, workspace }: ClientContext): string => `${origin}/mcp/${workspace}`

export const argumentsOf = ({ number, ms, events }: NumberedCall) => ({ number, ms, events })

interface JsonRpcError {
  readonly code?: number
  readonly message?: string
  readonly data?: unknown
}

/** The reason of a typed error; an error without one is named by its code and the start of its message. */
export const reasonOf = ({ code, message = '', data }: JsonRpcError): string => {
  const reason = (data as { reason?: unknown } | undefined)?.reason
  if (typeof reason === 'string') return reason
  return `${code} ${message.replaceAll(/[\d"]+/g, '…').slice(0, 60)}`
}

const textIn = (result: { readonly content?: unknown }): string =>
  ((result.content ?? []) as { text?: string }[]).map(({ text = '' }) => text).join('')

/** How a call ended whose response has arrived. A tool's own error is a result that says why. */
export const outcomeOf = (
  message: { readonly result?: Readonly<Record<string, unknown>>; readonly error?: JsonRpcError },
  isReplayed = false,
): Outcome => {
  if (message.error) return { kind: 'error', reason: reasonOf(message.error) }
  if (!message.result) return { kind: 'silent', why: `a response without a result: ${JSON.stringify(message)}` }
  return { kind: 'result', text: textIn(message.result), isReplayed }
}

const CUT_CODES = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'ETIMEDOUT']
const CUT_MESSAGE = /socket hang up|fetch failed|terminated|aborted|Connection closed|other side closed/

const causesOf = function* (error: unknown): Generator<NodeJS.ErrnoException> {
  for (let at = error; at instanceof Error; at = at.cause) yield at
}

/** How a call ended whose connection failed; undefined: it failed in another way. */
export const outcomeOfConnection = (error: unknown): Outcome | undefined => {
  const causes = [...causesOf(error)]
  if (causes.some(({ code }) => code === 'ECONNREFUSED')) return { kind: 'refused' }
  const isCut = causes.some(({ code, message }) => CUT_CODES.includes(code ?? '') || CUT_MESSAGE.test(message))
  return isCut ? { kind: 'cut' } : undefined
}

/** The answer to the question of `ask`: the number it holds. */
export const answerTo = (message: unknown): { action: 'accept'; content: { number: number } } => ({
  action: 'accept',
  content: { number: Number(/\d+/.exec(String(message))?.[0]) },
})
