import type { Answer, Dispatch, Exchange, Frame, Peer, Question, Upstream } from '../../protocol/exchange.ts'
import type { MessageTap, TappedServer } from '../../protocol/message-tap.ts'
import { withDispatch } from '../../protocol/with-dispatch.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeAnswer, encodeError, encodeNotification, encodeRequest, encodeResult } from '../../wire/json-rpc.ts'

const DIALECT = 'embedded'

/**
 * Lets the flight recorder see what a server inside this process hears and says. It never becomes bytes, so it is recorded as
 * the messages it would be.
 */
export const tapUpstream = (name: string, upstream: Upstream): Upstream => {
  const tapped = new WeakMap<Peer, Peer>() // one for each peer: the bridge compares peers by identity
  const tapPeer = (peer: Peer): Peer => {
    const known = tapped.get(peer) ?? withDispatch(peer, tapDispatch(name, peer))
    tapped.set(peer, known)
    return known
  }
  return {
    ...upstream, // it may offer more to the gateway itself
    open: (...args) => upstream.open(...args).then(tapPeer),
    knownPeer: caller => {
      const peer = upstream.knownPeer?.(caller)
      return peer && tapPeer(peer)
    },
    ...(upstream.sharedKey && { sharedKey: caller => upstream.sharedKey?.(caller) }),
    ...(upstream.probe && { probe: async () => (await upstream.probe?.()) ?? false }),
    close: () => upstream.close(),
  }
}

const tapDispatch = (name: string, peer: Peer): Dispatch => {
  let lastId = 0
  return exchange => {
    const tap = exchange.record?.tap
    if (!tap) return peer.dispatch(exchange)
    const server: TappedServer = { name, dialect: DIALECT, revision: peer.revision }
    peer.dispatch(new TappedCall(tap, server, exchange, ++lastId).begin())
  }
}

/** One request to a server inside this process. */
class TappedCall {
  readonly #tap: MessageTap
  readonly #server: TappedServer
  readonly #exchange: Exchange
  readonly #id: number
  #asked = 0

  constructor(tap: MessageTap, server: TappedServer, exchange: Exchange, id: number) {
    this.#tap = tap
    this.#server = server
    this.#exchange = exchange
    this.#id = id
  }

  begin(): Exchange {
    const { kind, method, params, sink } = this.#exchange
    const pieces = kind === 'request' ? encodeRequest(this.#id, method, params) : encodeNotification(method, params)
    this.#tap.serverMessage(this.#server, 'out', kind, method, pieces)
    return { ...this.#exchange, sink: frame => sink(this.#received(frame)) }
  }

  #received(frame: Frame): Frame {
    switch (frame.kind) {
      case 'question':
        return this.#question(frame)
      case 'notice':
        this.#add('notification', frame.method, encodeNotification(frame.method, frame.params))
        return frame
      case 'result':
        this.#add('result', undefined, encodeResult(this.#id, frame.result))
        return frame
      case 'failure':
        this.#add('error', undefined, encodeError(this.#id, frame.error))
        return frame
    }
  }

  #question(question: Question): Question {
    const { method, params } = question
    const id = Json.of(++this.#asked)
    this.#add('question', method, encodeRequest(id, method, params))
    const answer = (reply: Answer): void => {
      if (reply.kind !== 'progress')
        this.#tap.serverMessage(this.#server, 'out', 'answer', method, encodeAnswer(id, reply))
      question.answer(reply)
    }
    return { ...question, answer }
  }

  #add(kind: 'notification' | 'question' | 'result' | 'error', method: string | undefined, pieces: Buffer[]): void {
    this.#tap.serverMessage(this.#server, 'in', kind, method, pieces)
  }
}
