// OTLP in its JSON form: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. 64-bit integers are strings,
// enumerations numbers, ids hex digits.

/** The value of an attribute. */
export type AttributeValue = string | number | boolean

/** SpanAttributes by name; those that are undefined are left out. */
export type SpanAttributes = Readonly<Record<string, AttributeValue | undefined>>

/** The kinds of spans. */
export const SPAN_KIND = { internal: 1, server: 2, client: 3 } as const

const STATUS_ERROR = 2
const HAS_REMOTE_FLAG = 0x100 // the next flag is meaningful
const PARENT_IS_REMOTE = 0x200

/** A span that has ended. Times are microseconds since 1970. */
export interface EndedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly isParentRemote: boolean
  readonly traceState: string | undefined
  readonly name: string
  readonly kind: (typeof SPAN_KIND)[keyof typeof SPAN_KIND]
  readonly startUs: number
  readonly endUs: number
  readonly attributes: SpanAttributes
  readonly isError: boolean
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
}

const encodeValue = (value: AttributeValue): object => {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

export const encodeAttributes = (attributes: SpanAttributes): readonly object[] =>
  Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: encodeValue(value) }],
  )

/** Microseconds as the nanoseconds of OTLP, whose digits exceed what a number holds. */
export const encodeTime = (microseconds: number): string => `${Math.round(microseconds)}000`

export const encodeSpan = (span: EndedSpan): string => {
  const { parentSpanId, traceState, isParentRemote, isError, links } = span
  return JSON.stringify({
    traceId: span.traceId,
    spanId: span.spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    ...(traceState !== undefined && { traceState }),
    flags: 1 | HAS_REMOTE_FLAG | (isParentRemote ? PARENT_IS_REMOTE : 0),
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: encodeTime(span.startUs),
    endTimeUnixNano: encodeTime(span.endUs),
    attributes: encodeAttributes(span.attributes),
    ...(links.length > 0 && { links }),
    ...(isError && { status: { code: STATUS_ERROR } }),
  })
}

/** What sends the telemetry: the process, and the code that measures. */
export interface TelemetrySource {
  readonly resource: SpanAttributes
  readonly version: string
}

const SCOPE = 'dragoman'

/** The body of a request to `/v1/traces`; `spans` are encoded already, with commas between them. */
export const encodeTraces = ({ resource, version }: TelemetrySource, spans: Buffer): Buffer => {
  const [attributes, scope] = [encodeAttributes(resource), { name: SCOPE, version }].map(part => JSON.stringify(part))
  const head = `{"resourceSpans":[{"resource":{"attributes":${attributes}},"scopeSpans":[{"scope":${scope},"spans":[`
  return Buffer.concat([Buffer.from(head), spans, Buffer.from(']}]}]}')])
}

/** The body of a request to `/v1/metrics`. */
export const encodeMetrics = ({ resource, version }: TelemetrySource, metrics: readonly object[]): string =>
  JSON.stringify({
    resourceMetrics: [
      {
        resource: { attributes: encodeAttributes(resource) },
        scopeMetrics: [{ scope: { name: SCOPE, version }, metrics }],
      },
    ],
  })
