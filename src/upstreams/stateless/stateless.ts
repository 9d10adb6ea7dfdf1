import { ERRORS } from '../../protocol/errors.ts'
import type { Exchange, Peer } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { encodeNotification, type Message, requestBody } from '../../wire/json-rpc.ts'
import { errorOfFailure } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import { addCallerHeaders, type HttpLink, POST_HEADERS } from '../http/http-link.ts'
import { type ResponseEnd, ResponseReader } from '../http/response-reader.ts'
import { recordNotification } from '../record-messages.ts'
import { type CallOwner, type CallTransport, type Recovery, UpstreamCall } from '../session/call.ts'
import { sendMessage } from '../session/gateway-request.ts'
import { mcpMethod, mcpName, withEnvelope } from './envelope.ts'

/** Statuses with which a server of another era rejects a modern request. */
const WRONG_ERA_STATUSES: ReadonlySet<number> = new Set([400, 404, 405, 406])

/** A server of 2026-07-28 over HTTP. Requests are independent of each other, so all callers share one peer. */
export const createStateless = (link: HttpLink, onOtherEra: () => void): Peer => {
  const route = new StatelessRoute(link, onOtherEra)
  let lastId = 0
  return {
    revision: MODERN,
    asks: false,
    dispatch: exchange => {
      if (exchange.kind === 'notification') route.notify(exchange)
      else new UpstreamCall(route, route, exchange, ++lastId).start()
    },
  }
}

/** Sends the requests of all callers, each as a POST of its own. */
class StatelessRoute implements CallTransport<HttpLink>, CallOwner<HttpLink> {
  readonly dialect = 'stateless'
  readonly revision = MODERN
  readonly link: HttpLink
  readonly #headers: readonly string[]
  readonly #onOtherEra: () => void // called when the server seems to have changed its era

  constructor(link: HttpLink, onOtherEra: () => void) {
    this.link = link
    this.#headers = [...link.headers, ...POST_HEADERS, 'mcp-protocol-version', MODERN]
    this.#onOtherEra = onOtherEra
  }

  notify(exchange: Exchange): void {
    const { method, params } = exchange
    const headers = addCallerHeaders([...this.#headers, 'mcp-method', mcpMethod(method)], exchange)
    const pieces = encodeNotification(method, params)
    recordNotification(exchange, this, pieces, headers)
    sendMessage(this.link, 'POST', headers, pieces, method)
  }

  send(call: UpstreamCall<HttpLink>): PendingRequest {
    const { method, caller } = call.exchange
    const { http, target, maxBytes } = this.link
    const params = withEnvelope(call.params, caller)
    const name = mcpName(method, params)
    const headers = [...this.#headers, 'mcp-method', mcpMethod(method)]
    if (name !== undefined) headers.push('mcp-name', name)
    addCallerHeaders(headers, call.exchange)
    const body = requestBody(call.id, method, params)
    call.begin(this.link)
    call.recordSent(params, headers)
    return http.send(
      { method: 'POST', target, headers, body, isLongLived: call.isListen },
      new ResponseReader(call, maxBytes),
    )
  }

  /** A modern server must not ask on a stream; a request from it gets no answer. */
  asked(call: UpstreamCall<HttpLink>, message: Message): void {
    this.otherMessage(call, message)
  }

  otherMessage({ exchange }: UpstreamCall<HttpLink>, message: Message): void {
    this.link.log.debug({ kind: message.kind, method: exchange.method }, 'message dropped: it is not for this call')
  }

  /** After a refusal that no modern server would write, the era of the server is detected again. */
  recover(call: UpstreamCall<HttpLink>, end: ResponseEnd): Recovery {
    if (end.kind !== 'refused' || !WRONG_ERA_STATUSES.has(end.status)) return undefined
    const { error } = end
    if (error?.error.code === ERRORS.unsupportedVersion.code) {
      this.#onOtherEra()
      const text = `no longer speaks ${MODERN}: call again, the gateway will detect its revision`
      call.fail(errorOfFailure(this.link.name, { reason: 'upstream_protocol', text }))
      return 'handled'
    }
    if (error?.id?.asNumber() !== call.id) this.#onOtherEra()
    return undefined
  }

  // The server sees the closed request as a cancellation.
  cancel(): void {}

  finished(): void {}
}
