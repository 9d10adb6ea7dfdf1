import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'

// The JSON form of opentelemetry/proto/collector/{trace,metrics}/v1, as strict as the protocol is: names in lowerCamelCase,
// 64-bit integers as strings, ids as hex digits, enumerations as numbers.

const uint64 = z.string().regex(/^\d{1,20}$/)
const nanos = z.string().regex(/^1[0-9]{18}$/)
const traceId = z.string().regex(/^(?!0+$)[0-9a-f]{32}$/)
const spanId = z.string().regex(/^(?!0+$)[0-9a-f]{16}$/)
const value = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ boolValue: z.boolean() }),
  z.strictObject({ intValue: z.string().regex(/^-?\d{1,19}$/) }),
  z.strictObject({ doubleValue: z.number() }),
])
const attributes = z
  .array(z.strictObject({ key: z.string().min(1), value }))
  .refine(list => new Set(list.map(({ key }) => key)).size === list.length, 'attribute keys must be unique')
const scope = z.strictObject({ name: z.string(), version: z.string() })
const resource = z.strictObject({ attributes })

const span = z
  .strictObject({
    traceId,
    spanId,
    parentSpanId: spanId.optional(),
    traceState: z.string().optional(),
    flags: z.int().min(0).max(0xffffffff),
    name: z.string().min(1),
    kind: z.int().min(1).max(5),
    startTimeUnixNano: nanos,
    endTimeUnixNano: nanos,
    attributes,
    links: z.array(z.strictObject({ traceId, spanId })).optional(),
    status: z.strictObject({ code: z.literal(2), message: z.string().optional() }).optional(),
  })
  .refine(({ startTimeUnixNano: from, endTimeUnixNano: to }) => BigInt(from) <= BigInt(to), 'ends before it starts')

const traces = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({ resource, scopeSpans: z.array(z.strictObject({ scope, spans: z.array(span).min(1) })) }),
  ),
})

const point = { attributes, startTimeUnixNano: nanos, timeUnixNano: nanos }
const numberPoint = z.strictObject({ ...point, asDouble: z.number() })
const histogramPoint = z
  .strictObject({
    ...point,
    count: uint64,
    sum: z.number(),
    bucketCounts: z.array(uint64),
    explicitBounds: z.array(z.number()),
  })
  .refine(({ bucketCounts, explicitBounds }) => bucketCounts.length === explicitBounds.length + 1, 'one bucket more')
  .refine(
    ({ bucketCounts, count }) => bucketCounts.reduce((sum, each) => sum + Number(each), 0) === Number(count),
    'the buckets hold everything',
  )
const temporality = z.literal(2)
const head = { name: z.string().min(1), description: z.string().optional(), unit: z.string() }
const metric = z.union([
  z.strictObject({ ...head, gauge: z.strictObject({ dataPoints: z.array(numberPoint) }) }),
  z.strictObject({
    ...head,
    sum: z.strictObject({
      aggregationTemporality: temporality,
      isMonotonic: z.boolean(),
      dataPoints: z.array(numberPoint),
    }),
  }),
  z.strictObject({
    ...head,
    histogram: z.strictObject({ aggregationTemporality: temporality, dataPoints: z.array(histogramPoint) }),
  }),
])
const metrics = z.strictObject({
  resourceMetrics: z.array(
    z.strictObject({ resource, scopeMetrics: z.array(z.strictObject({ scope, metrics: z.array(metric).min(1) })) }),
  ),
})

const SCHEMAS: Readonly<Record<string, z.ZodType>> = { '/v1/traces': traces, '/v1/metrics': metrics }

/** A span as tests look at it. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  readonly isError: boolean
  readonly links: readonly { traceId: string; spanId: string }[]
  readonly attributes: Readonly<Record<string, string | number | boolean>>
}

export type ReceivedMetric = z.output<typeof metric>

type Respond = (response: ServerResponse) => void
const accept: Respond = response => response.setHeader('content-type', 'application/json').end('{}')

/** A collector on a socket: checks every export against the protocol, and keeps it. */
export const startOtlpReceiver = async (port = 0) => {
  const [spans, received, problems]: [ReceivedSpan[], ReceivedMetric[], string[]] = [[], [], []]
  const requests: { path: string; headers: IncomingHttpHeaders; resource: Record<string, unknown> }[] = []
  const texts: string[] = [] // the bodies
  const waiting = new Set<() => void>()
  let respond = accept
  const take = (path: string, headers: IncomingHttpHeaders, body: Buffer): void => {
    const text = headers['content-encoding'] === 'gzip' ? gunzipSync(body).toString() : body.toString()
    texts.push(text)
    const schema = SCHEMAS[path]
    if (!schema || headers['content-type'] !== 'application/json') return void problems.push(`${path} ${text}`)
    const parsed = schema.safeParse(JSON.parse(text))
    if (!parsed.success) return void problems.push(z.prettifyError(parsed.error))
    const { resourceSpans = [], resourceMetrics = [] } = parsed.data as {
      resourceSpans?: z.output<typeof traces>['resourceSpans']
      resourceMetrics?: z.output<typeof metrics>['resourceMetrics']
    }
    const [first] = [...resourceSpans, ...resourceMetrics]
    requests.push({ path, headers, resource: plain(first?.resource.attributes ?? []) })
    for (const { scopeSpans } of resourceSpans)
      for (const each of scopeSpans.flatMap(group => group.spans)) spans.push(readSpan(each))
    for (const { scopeMetrics } of resourceMetrics) received.push(...scopeMetrics.flatMap(group => group.metrics))
  }
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (respond === accept) take(request.url ?? '', request.headers, Buffer.concat(chunks))
      else requests.push({ path: request.url ?? '', headers: request.headers, resource: {} })
      respond(response)
      for (const look of [...waiting]) look()
    })
  })
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    metrics: received,
    texts,
    requests,
    problems,
    /** Answers everything in that way from now on; without one, as a collector does. */
    become: (next?: Respond) => {
      respond = next ?? accept
    },
    until: (holds: () => boolean): Promise<void> =>
      new Promise(resolve => {
        const look = (): void => {
          if (!holds()) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    close: async (): Promise<void> => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const plain = (list: z.output<typeof attributes>): Record<string, string | number | boolean> =>
  Object.fromEntries(
    list.map(({ key, value: given }) => [key, 'intValue' in given ? Number(given.intValue) : Object.values(given)[0]]),
  )

const readSpan = ({ attributes: list, status, links = [], parentSpanId, ...rest }: z.output<typeof span>) => ({
  ...rest,
  parentSpanId,
  links,
  isError: status !== undefined,
  attributes: plain(list),
})
