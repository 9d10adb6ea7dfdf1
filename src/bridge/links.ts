import { NEVER } from '../protocol/cancellation.ts'
import { deliver } from '../protocol/deliver.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { methodInfo } from '../protocol/methods.ts'
import { Json } from '../wire/json/json.ts'
import { refusalOf } from './refusals.ts'
import type { SharedSession } from './shared-session/shared-session.ts'

const LINKS_REQUIRED = -32042
const MOST_ROUNDS = 10
const PATIENCE_MS = 10_000 // for the server to notice that the user is done

/** Turns a legacy "open these links first" error into questions; once they are accepted the call is sent again. */
export const askForLinks =
  (session: SharedSession): Dispatch =>
  exchange => {
    if (methodInfo(exchange.method)?.asks) send(session, exchange, 1)
    else session.dispatch(exchange)
  }

const send = (session: SharedSession, exchange: Exchange, round: number): void =>
  session.dispatch({
    ...exchange,
    sink: frame => {
      const links = linksIn(frame)
      if (!links) return exchange.sink(frame)
      if (round > MOST_ROUNDS) return give(exchange, 'The server kept asking for links to be opened')
      ask(session, exchange, links, round)
    },
  })

const linksIn = (frame: Frame): readonly Json[] | undefined => {
  if (frame.kind !== 'failure' || frame.error.code !== LINKS_REQUIRED) return undefined
  const links = (frame.error.data?.get('elicitations')?.elements() ?? []).filter(link => link.isObject)
  return links.length > 0 ? links : undefined
}

const ask = (session: SharedSession, exchange: Exchange, links: readonly Json[], round: number): void => {
  const refusal = refusalOf(exchange.caller.capabilities, 'elicitation/create', Json.of({ mode: 'url' }))
  if (refusal) return void deliver(exchange.sink, { kind: 'failure', error: NEEDS_LINKS })
  const completed = completions(session, exchange, links)
  const release = session.hold()
  exchange.signal.onAbort(release)
  let open = links.length
  let isOver = false
  const answer = (reply: Answer): void => {
    if (isOver || reply.kind === 'progress') return
    const isAccepted = reply.kind === 'result' && reply.result.get('action')?.asString() === 'accept'
    if (!isAccepted) {
      isOver = true
      completed.forget()
      release()
      return give(exchange, 'The user did not open the link the server asked for')
    }
    if (--open > 0) return
    isOver = true
    completed.wait(() => {
      send(session, exchange, round + 1)
      release()
    })
  }
  for (const link of links)
    void deliver(exchange.sink, {
      kind: 'question',
      method: 'elicitation/create',
      params: link.with('mode', 'url'),
      withdrawn: NEVER,
      answer,
    })
}

const NEEDS_LINKS: RpcError = rpcError(
  'missingCapability',
  'The server needs the user to open a link, which this client does not offer',
  Json.of({ requiredCapabilities: { elicitation: { url: {} } } }),
)

/** Watches for the server's word that its links were completed, which may come before or after the user's. */
const completions = (session: SharedSession, exchange: Exchange, links: readonly Json[]) => {
  const missing = new Set(links.flatMap(link => link.get('elicitationId')?.asString() ?? []))
  let whenDone: (() => void) | undefined
  const forget = session.overhear((method, params) => {
    if (method !== 'notifications/elicitation/complete') return
    missing.delete(params.get('elicitationId')?.asString() ?? '')
    if (missing.size === 0) whenDone?.()
  })
  exchange.signal.onAbort(forget)
  const wait = (then: () => void): void => {
    const go = (): void => {
      clearTimeout(timer)
      forget()
      whenDone = undefined
      if (!exchange.signal.reason) then()
    }
    const timer = setTimeout(go, PATIENCE_MS)
    whenDone = go
    if (missing.size === 0) go()
  }
  return { wait, forget }
}

/** The refusal in the words of the method: a tool fails, anything else is an error. */
const give = (exchange: Exchange, message: string): void => {
  if (exchange.method !== 'tools/call')
    return void deliver(exchange.sink, { kind: 'failure', error: rpcError('internal', message) })
  void deliver(exchange.sink, {
    kind: 'result',
    result: Json.of({ isError: true, content: [{ type: 'text', text: message }] }),
  })
}
