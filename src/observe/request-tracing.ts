import type { Answer, Exchange, Question, RequestTrace } from '../protocol/exchange.ts'
import { SPAN_KIND, type SpanAttributes } from '../telemetry/otlp-json.ts'
import { parseTraceparent, type TraceContext, writeTraceparent } from '../telemetry/trace-context.ts'
import type { Span, SpanStart, Tracer } from '../telemetry/tracer.ts'
import { Json } from '../wire/json/json.ts'
import { describeClient, type SessionLabels } from './audit-line.ts'
import { auditText, outcomeOf, type RequestOutcome, type RequestTarget, requestTarget } from './request-facts.ts'

// Spans with the attributes of the semantic conventions for MCP and GenAI:
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md

const PARENT = 'traceparent'
const STATE = 'tracestate'
const EXECUTE_TOOL = 'execute_tool'
const STDIO = 'stdio'
const TRANSPORT = {
  tcp: { 'network.transport': 'tcp', 'network.protocol.name': 'http' },
  pipe: { 'network.transport': 'pipe' },
}

interface RequestTracingOptions {
  readonly tracer: Tracer
  readonly labels: SessionLabels
  /** Where a server is, for the spans of requests to it. */
  readonly peerOf: (server: string) => SpanAttributes
  /** Whether a server is told the context of a request that is not recorded in its `_meta`; over HTTP a header is enough. */
  readonly readsMeta: (server: string) => boolean
}

type SpanContext = Pick<SpanStart, 'parent' | 'traceState' | 'link'>

/** Traces requests of clients, and what they cause at servers. */
export class RequestTracing {
  readonly #options: RequestTracingOptions

  constructor(options: RequestTracingOptions) {
    this.#options = options
  }

  /** The trace of a request. It is not recorded if the sampler says so; then it has no span. */
  begin(exchange: Exchange, dialect: string): TracedRequest {
    const { tracer } = this.#options
    const meta = exchange.params.get('_meta')
    const own = parseTraceparent(meta?.get(PARENT)?.asString())
    const parent = own ?? this.#inHeader(exchange)
    const traceId = parent?.traceId ?? tracer.ids.trace()
    const span = tracer.isSampled(parent, traceId)
      ? this.#start(traceId, exchange, dialect, {
          parent,
          traceState: meta?.get(STATE)?.asString(),
          link: own && this.#otherInHeader(exchange, own),
        })
      : undefined
    return new TracedRequest(this.#options, traceId, span, parent === undefined)
  }

  #start(traceId: string, exchange: Exchange, dialect: string, context: SpanContext): Span {
    const target = requestTarget(exchange)
    return this.#options.tracer.start(traceId, {
      ...context,
      name: spanName(exchange.method, target),
      attributes: this.#attributesOf(exchange, dialect, target),
    })
  }

  #inHeader({ caller }: Exchange): TraceContext | undefined {
    return caller.headers.size > 0 ? parseTraceparent(caller.headers.get(PARENT)) : undefined
  }

  /** The context of the HTTP request, if it is not that of the message. */
  #otherInHeader(exchange: Exchange, own: TraceContext): TraceContext | undefined {
    const other = this.#inHeader(exchange)
    return other?.spanId === own.spanId ? undefined : other
  }

  #attributesOf(
    { method, caller, origin }: Exchange,
    dialect: string,
    target: RequestTarget | undefined,
  ): SpanAttributes {
    const { name, version } = describeClient(caller.info)
    return {
      ...targetAttributes(method, target),
      'mcp.protocol.version': caller.revision,
      'mcp.session.id': caller.session === undefined ? undefined : this.#options.labels.of(caller.session),
      'jsonrpc.request.id': origin?.id && auditText(origin.id.asString() ?? origin.id.toString()),
      ...(dialect === STDIO ? TRANSPORT.pipe : TRANSPORT.tcp),
      'client.address': origin?.address,
      'enduser.id': caller.principal,
      'dragoman.workspace': caller.workspace,
      'dragoman.dialect': dialect,
      'dragoman.client.name': name,
      'dragoman.client.version': version,
    }
  }
}

/** One request in a trace. */
export class TracedRequest implements RequestTrace {
  readonly #options: RequestTracingOptions
  readonly #traceId: string
  readonly #span: Span | undefined
  readonly #isRoot: boolean // the client sent no context
  #unrecorded: string | undefined

  constructor(options: RequestTracingOptions, traceId: string, span: Span | undefined, isRoot: boolean) {
    this.#options = options
    this.#traceId = traceId
    this.#span = span
    this.#isRoot = isRoot
  }

  get isRecorded(): boolean {
    return this.#span !== undefined
  }

  /** The id of the trace, if it is recorded. */
  get traceId(): string | undefined {
    return this.#span && this.#traceId
  }

  /** Servers that decide as their parent does will not record the request, either. */
  get unrecorded(): string | undefined {
    if (this.#span) return undefined
    const traceId = this.#traceId
    this.#unrecorded ??= writeTraceparent({ traceId, spanId: this.#options.tracer.ids.span(), isSampled: false })
    return this.#unrecorded
  }

  /** Whether servers must be told something else than what the client sent. */
  get changesContext(): boolean {
    return this.#span !== undefined || this.#isRoot
  }

  /** The request calls another tool than it names. */
  calls(method: string, target: RequestTarget | undefined): void {
    const span = this.#span
    span?.rename(spanName(method, target))
    span?.setAttributes(targetAttributes(method, target))
  }

  send(exchange: Exchange, server: string): Exchange {
    const span = this.#span
    if (!span) {
      const text = this.#options.readsMeta(server) ? this.unrecorded : undefined
      return text === undefined ? exchange : withMeta(exchange, text)
    }
    const { method, sink, signal } = exchange
    const target = requestTarget(exchange)
    const sending = span.child(spanName(method, target), SPAN_KIND.client, {
      ...targetAttributes(method, target),
      'dragoman.server': server,
      ...this.#options.peerOf(server),
    })
    const stopListening = signal.onAbort(({ kind }) =>
      sending.end({ 'dragoman.outcome': 'cancelled', 'dragoman.reason': kind }, false),
    )
    return {
      ...withHeader(withMeta(exchange, writeTraceparent(sending)), writeTraceparent(sending)),
      sink: frame => {
        if (frame.kind === 'result' || frame.kind === 'failure') {
          stopListening()
          endSpan(sending, outcomeOf(method, frame, false))
        }
        return sink(frame)
      },
    }
  }

  ask(question: Question): Question {
    const span = this.#span
    if (!span) return question
    const { method, withdrawn, answer } = question
    const asking = span.child(auditText(method), SPAN_KIND.client, { 'mcp.method.name': method })
    withdrawn.onAbort(() => asking.end({ 'dragoman.outcome': 'withdrawn' }, false))
    return {
      ...question,
      answer: reply => {
        if (reply.kind !== 'progress') asking.end(...answerAttributes(reply))
        answer(reply)
      },
    }
  }

  ended(outcome: RequestOutcome, server: string | undefined): void {
    const span = this.#span
    if (!span) return
    span.setAttributes({ 'dragoman.server': server })
    endSpan(span, outcome)
  }
}

/** The conventions name a request after what it calls; URIs would be too many names. */
const spanName = (method: string, target: RequestTarget | undefined): string =>
  target && target.kind !== 'resource' ? `${auditText(method)} ${target.name}` : auditText(method)

const ATTRIBUTE_OF = { tool: 'gen_ai.tool.name', prompt: 'gen_ai.prompt.name', resource: 'mcp.resource.uri' } as const

const targetAttributes = (method: string, target: RequestTarget | undefined): SpanAttributes => ({
  'mcp.method.name': auditText(method),
  'gen_ai.operation.name': target?.kind === 'tool' ? EXECUTE_TOOL : undefined,
  ...(target && { [ATTRIBUTE_OF[target.kind]]: target.name }),
})

const FAILED: ReadonlySet<RequestOutcome['outcome']> = new Set(['tool_error', 'error', 'denied'])

/** The message of an error is left out: it may quote arguments. */
const endSpan = (span: Span, { outcome, code, reason }: RequestOutcome): void => {
  const isError = FAILED.has(outcome)
  span.end(
    {
      'error.type': isError ? (code === undefined ? outcome : String(code)) : undefined,
      'rpc.response.status_code': code === undefined ? undefined : String(code),
      'dragoman.outcome': outcome,
      'dragoman.reason': reason,
    },
    isError,
  )
}

const answerAttributes = (reply: Exclude<Answer, { kind: 'progress' }>): [SpanAttributes, boolean] => {
  if (reply.kind === 'error') {
    const code = String(reply.error.code)
    return [{ 'error.type': code, 'rpc.response.status_code': code }, true]
  }
  const action = reply.result.get('action')?.asString() // of an elicitation
  return [{ 'dragoman.action': action === undefined ? undefined : auditText(action) }, false]
}

/** With the context in `_meta`, which every transport carries. */
const withMeta = (exchange: Exchange, text: string): Exchange => {
  const { params } = exchange
  const meta = params.get('_meta')
  return { ...exchange, params: params.with('_meta', (meta?.isObject ? meta : Json.empty).with(PARENT, text)) }
}

/** With the context in the headers that HTTP has. */
const withHeader = (exchange: Exchange, text: string): Exchange => {
  const { caller } = exchange
  return { ...exchange, caller: { ...caller, headers: new Map(caller.headers).set(PARENT, text) } }
}
