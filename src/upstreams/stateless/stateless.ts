import type { Exchange, Frame, Peer } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { join, type Message, notificationPieces, requestPieces } from '../../wire/json-rpc.ts'
import { toRpcError } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import { addCallerHeaders, type HttpLink, POST_HEADERS } from '../http/http-link.ts'
import { type ResponseEnd, ResponseReader } from '../http/response-reader.ts'
import { Call } from '../session/call.ts'
import { tell } from '../session/tell.ts'
import { mcpMethod, mcpName, withEnvelope } from './envelope.ts'

const LISTEN = 'subscriptions/listen'
const UNSUPPORTED_VERSION = -32022
const WRONG_DOOR: ReadonlySet<number> = new Set([400, 404, 405, 406])

/** A server of 2026-07-28: every request stands alone, so all callers share one peer. */
export const createStateless = (link: HttpLink, onDoubt: () => void): Peer => {
  const shared: Shared = {
    link,
    onDoubt,
    headers: [...link.headers, ...POST_HEADERS, 'mcp-protocol-version', MODERN],
  }
  let lastId = 0
  return {
    revision: MODERN,
    asks: false,
    dispatch: exchange => {
      if (exchange.kind === 'notification') notify(shared, exchange)
      else new StatelessCall(shared, exchange, ++lastId).start()
    },
  }
}

interface Shared {
  readonly link: HttpLink
  readonly headers: readonly string[]
  readonly onDoubt: () => void // the server may have changed its era
}

const notify = ({ link, headers }: Shared, { method, params, caller }: Exchange): void => {
  const sent = addCallerHeaders([...headers, 'mcp-method', mcpMethod(method)], caller)
  tell(link, 'POST', sent, notificationPieces(method, params), method)
}

class StatelessCall extends Call {
  readonly #shared: Shared

  constructor(shared: Shared, exchange: Exchange, id: number) {
    super(shared.link, exchange, id)
    this.#shared = shared
    if (exchange.method === LISTEN) this.silenceMs = 0
  }

  protected send(): PendingRequest {
    const { method, caller } = this.exchange
    const { link, headers } = this.#shared
    const params = withEnvelope(this.params, caller)
    const name = mcpName(method, params)
    const sent = [...headers, 'mcp-method', mcpMethod(method)]
    if (name !== undefined) sent.push('mcp-name', name)
    return link.http.send(
      {
        method: 'POST',
        target: link.target,
        headers: addCallerHeaders(sent, caller),
        body: join(requestPieces(this.id, method, params)),
        isLongLived: method === LISTEN,
      },
      new ResponseReader(this, link.maxBytes),
    )
  }

  /** A modern server must not ask on a stream; one that does gets no answer. */
  protected asked(message: Extract<Message, { kind: 'request' }>): void {
    this.strayed(message)
  }

  protected strayed(message: Message): void {
    this.link.log.debug(
      { kind: message.kind, method: this.exchange.method },
      'dropped a message that is not for this call',
    )
  }

  /** A refusal that no modern server would write is a reason to look again whom we talk to. */
  protected recover(end: ResponseEnd): boolean {
    if (end.kind !== 'refused' || !WRONG_DOOR.has(end.status)) return false
    const { error } = end
    if (error?.error.code === UNSUPPORTED_VERSION) {
      this.#shared.onDoubt()
      const text = `no longer speaks ${MODERN}: call again, the gateway will find out what it speaks`
      this.fail(toRpcError(this.link.name, { reason: 'upstream_protocol', text }))
      return true
    }
    if (error?.id?.asNumber() !== this.id) this.#shared.onDoubt()
    return false
  }

  // Closing the request is the cancellation.
  protected cancelled(): void {}

  protected finished(_: Frame | undefined): void {}
}
