import { type EndedSpan, encodeSpan, SPAN_KIND, type SpanAttributes } from './otlp-json.ts'
import type { Sample } from './sampling.ts'
import { RandomIds, type TraceContext } from './trace-context.ts'

/** A span that goes on. */
export interface Span extends TraceContext {
  rename(name: string): void
  setAttributes(attributes: SpanAttributes): void
  /** A span of the same trace, within this one. */
  child(name: string, kind: EndedSpan['kind'], attributes: SpanAttributes): Span
  /** Ends it, once; later calls have no effect. */
  end(attributes: SpanAttributes, isError: boolean): void
}

/** How a span of the gateway begins. */
export interface SpanStart {
  readonly parent: TraceContext | undefined // of the client
  readonly traceState: string | undefined
  readonly link: TraceContext | undefined // another context that the request came with
  readonly name: string
  readonly attributes: SpanAttributes
}

/** Begins traces and spans; ended spans are handed to `take` in their encoded form. */
export class Tracer {
  readonly #sample: Sample
  readonly #take: (span: string) => void
  readonly ids = new RandomIds()

  constructor(sample: Sample, take: (span: string) => void) {
    this.#sample = sample
    this.#take = take
  }

  /** Whether the trace of a request is recorded. */
  isSampled(parent: TraceContext | undefined, traceId: string): boolean {
    return this.#sample(parent, traceId)
  }

  /** The span of a request of a client. */
  start(traceId: string, { parent, traceState, link, name, attributes }: SpanStart): Span {
    const clock = new SpanClock()
    return new RunningSpan(this.#take, this.ids, clock, {
      traceId,
      spanId: this.ids.span(),
      parentSpanId: parent?.spanId,
      isParentRemote: parent !== undefined,
      traceState,
      name,
      kind: SPAN_KIND.server,
      startUs: clock.now(),
      attributes,
      links: link ? [{ traceId: link.traceId, spanId: link.spanId }] : [],
    })
  }
}

/** Times of one trace: exact to the microsecond relative to each other, and as right as the clock was at its begin. */
class SpanClock {
  readonly #atUs = Date.now() * 1000
  readonly #begun = performance.now()

  now(): number {
    return this.#atUs + (performance.now() - this.#begun) * 1000
  }
}

type StartedSpan = Omit<EndedSpan, 'endUs' | 'isError'>

class RunningSpan implements Span {
  readonly isSampled = true
  readonly #take: (span: string) => void
  readonly #ids: RandomIds
  readonly #clock: SpanClock
  readonly #started: StartedSpan
  #name: string
  #attributes: SpanAttributes
  #isEnded = false

  constructor(take: (span: string) => void, ids: RandomIds, clock: SpanClock, started: StartedSpan) {
    this.#take = take
    this.#ids = ids
    this.#clock = clock
    this.#started = started
    this.#name = started.name
    this.#attributes = started.attributes
  }

  get traceId(): string {
    return this.#started.traceId
  }

  get spanId(): string {
    return this.#started.spanId
  }

  rename(name: string): void {
    this.#name = name
  }

  setAttributes(attributes: SpanAttributes): void {
    this.#attributes = { ...this.#attributes, ...attributes }
  }

  child(name: string, kind: EndedSpan['kind'], attributes: SpanAttributes): Span {
    const { traceId, spanId, traceState } = this.#started
    return new RunningSpan(this.#take, this.#ids, this.#clock, {
      traceId,
      spanId: this.#ids.span(),
      parentSpanId: spanId,
      isParentRemote: false,
      traceState,
      name,
      kind,
      startUs: this.#clock.now(),
      attributes,
      links: [],
    })
  }

  end(attributes: SpanAttributes, isError: boolean): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const all = { ...this.#attributes, ...attributes }
    this.#take(encodeSpan({ ...this.#started, name: this.#name, attributes: all, endUs: this.#clock.now(), isError }))
  }
}
