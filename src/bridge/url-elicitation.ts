import { NEVER } from '../protocol/cancellation.ts'
import { deliver, failWith } from '../protocol/deliver.ts'
import { ERRORS, type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { methodInfo } from '../protocol/methods.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import { within } from '../std/time.ts'
import { Json } from '../wire/json/json.ts'
import { failCall, questionRefusal } from './client-questions.ts'

const MAX_ROUNDS = 10
const COMPLETION_MS = 10_000 // for the server to announce that the user is done

/** The legacy session that a call is sent on. */
export interface UrlSession {
  readonly dispatch: Dispatch
  hold(): () => void
  onNotification(listener: (method: string, params: Json) => void): () => void
}

/** Turns the legacy error "open these URLs first" into questions; once they are accepted, the call is sent again. */
export const askForUrls =
  (session: UrlSession): Dispatch =>
  exchange => {
    if (methodInfo(exchange.method)?.asks) send(session, exchange, 1)
    else session.dispatch(exchange)
  }

const send = (session: UrlSession, exchange: Exchange, round: number): void =>
  session.dispatch({
    ...exchange,
    sink: frame => {
      const elicitations = elicitationsIn(frame)
      if (!elicitations) return exchange.sink(frame)
      if (round > MAX_ROUNDS) return failCall(exchange, 'The server kept asking for links to be opened')
      ask(session, exchange, elicitations, round)
    },
  })

const elicitationsIn = (frame: Frame): readonly Json[] | undefined => {
  if (frame.kind !== 'failure' || frame.error.code !== ERRORS.urlElicitationRequired.code) return undefined
  const elicitations = (frame.error.data?.get('elicitations')?.elements() ?? []).filter(({ isObject }) => isObject)
  return elicitations.length > 0 ? elicitations : undefined
}

const ask = (session: UrlSession, exchange: Exchange, elicitations: readonly Json[], round: number): void => {
  const refusal = questionRefusal(exchange.caller.capabilities, 'elicitation/create', Json.of({ mode: 'url' }))
  if (refusal) return void deliver(exchange.sink, { kind: 'failure', error: NOT_SUPPORTED })
  const completion = watchCompletion(session, elicitations)
  const releaseSession = session.hold()
  const release = (): void => {
    completion.stop()
    releaseSession()
  }
  exchange.signal.onAbort(release)
  let open = elicitations.length
  let isOver = false
  const answer = (reply: Answer): void => {
    if (isOver || reply.kind === 'progress') return
    const isAccepted = reply.kind === 'result' && reply.result.get('action')?.asString() === 'accept'
    isOver = !isAccepted || --open === 0
    if (!isOver) return
    if (isAccepted) return void sendAgain()
    release()
    failCall(exchange, 'The user did not open the link the server asked for')
  }
  const sendAgain = async (): Promise<void> => {
    await within(COMPLETION_MS, completion.done, () => {})
    try {
      if (!exchange.signal.reason) send(session, exchange, round + 1)
    } catch (thrown) {
      failWith(exchange, thrown)
    }
    release()
  }
  for (const elicitation of elicitations)
    void deliver(exchange.sink, {
      kind: 'question',
      method: 'elicitation/create',
      params: elicitation.with('mode', 'url'),
      withdrawn: NEVER,
      answer,
    })
}

const NOT_SUPPORTED: RpcError = rpcError(
  'missingCapability',
  'The server needs the user to open a link, which this client does not support',
  Json.of({ requiredCapabilities: { elicitation: { url: {} } } }),
)

/** `done` resolves when the server has announced the completion of all; that may come before the user's answer. */
const watchCompletion = (session: UrlSession, elicitations: readonly Json[]) => {
  const missing = new Set(elicitations.flatMap(elicitation => elicitation.get('elicitationId')?.asString() ?? []))
  let resolveDone: () => void = () => {}
  const done = new Promise<void>(resolve => {
    resolveDone = resolve
  })
  if (missing.size === 0) resolveDone()
  const stop = session.onNotification((method, params) => {
    if (method !== NOTIFICATIONS.elicitationComplete) return
    missing.delete(params.get('elicitationId')?.asString() ?? '')
    if (missing.size === 0) resolveDone()
  })
  return { done, stop }
}
