/** Upper bounds of the duration buckets, in seconds. */
export const BUCKETS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
]

/** Counts of the requests of one dialect and method. Plain numbers, because every request updates them. */
export interface RequestCounts {
  readonly dialect: string
  readonly method: string
  readonly isTimed: boolean
  ok: number
  error: number
  cancelled: number
  seconds: number // sum of all durations
  readonly buckets: number[] // requests per duration bucket; the last one is beyond all bounds
}

/** A failure that a server caused. */
export interface ServerFailure {
  readonly server: string
  readonly reason: string
}

export interface FailureCount extends ServerFailure {
  count: number
}

/** The part of an exchange that is needed to count it. */
export interface CountedExchange<F> {
  readonly kind: string
  readonly method: string
  readonly signal: { onAbort(listener: (reason: AbortKind) => void): () => void }
  readonly sink: (frame: F) => void | Promise<void>
}

export interface AbortKind {
  readonly kind: string
}

/** Follows one request that is recorded, and is its `record` for the layers below; `ended` or `aborted` is called last. */
export interface RequestFollower<F> {
  /** A frame on its way to the client. */
  pass(frame: F): F
  ended(frame: F, ms: number): void
  aborted(reason: AbortKind, ms: number): void
}

interface MetricsOptions<F> {
  /** Methods with their own counts; all others share one, because clients can invent any number of names. */
  readonly isKnown: (method: string) => boolean
  /** Methods whose requests stay open as long as the client likes; they are not timed. */
  readonly isStanding: (method: string) => boolean
  /** The server that caused a failure, if one did. */
  readonly serverFailureOf: (frame: F) => ServerFailure | undefined
}

const OTHER = 'other'
const MAX_FAILURES = 256

/** Counts requests. Costs less than a microsecond per request; everything else is computed when metrics are read. */
export const createMetrics = <F extends { readonly kind: string }>({
  isKnown,
  isStanding,
  serverFailureOf,
}: MetricsOptions<F>) => {
  const rows: RequestCounts[] = []
  const dialects = new Map<string, Map<string, RequestCounts>>()
  const failures = new Map<string, FailureCount>()

  const rowFinder = (dialect: string): ((method: string) => RequestCounts) => {
    const byMethod = dialects.get(dialect) ?? new Map<string, RequestCounts>()
    dialects.set(dialect, byMethod)
    return method => byMethod.get(method) ?? addRow(dialect, isKnown(method) ? method : OTHER, byMethod)
  }

  const addRow = (dialect: string, method: string, byMethod: Map<string, RequestCounts>): RequestCounts => {
    const known = byMethod.get(method)
    if (known) return known
    const row: RequestCounts = {
      dialect,
      method,
      isTimed: !isStanding(method),
      ok: 0,
      error: 0,
      cancelled: 0,
      seconds: 0,
      buckets: new Array<number>(BUCKETS.length + 1).fill(0),
    }
    byMethod.set(method, row)
    rows.push(row)
    return row
  }

  const countFailure = (found: ServerFailure | undefined): void => {
    if (!found) return
    const key = `${found.server} ${found.reason}`
    const known = failures.get(key)
    if (known) known.count++
    else if (failures.size < MAX_FAILURES) failures.set(key, { ...found, count: 1 })
  }

  /** Wraps a dispatch, so that its requests are counted under this dialect, and followed if they are recorded. */
  const count = <E extends CountedExchange<F>>(
    dialect: string,
    dispatch: (exchange: E) => void,
    followerFor?: (exchange: E) => RequestFollower<F> | undefined,
  ): ((exchange: E) => void) => {
    const rowOf = rowFinder(dialect)
    return exchange => {
      if (exchange.kind !== 'request') return dispatch(exchange)
      const row = rowOf(exchange.method)
      const started = performance.now()
      const follower = followerFor?.(exchange)
      let isOver = false
      const removeListener = exchange.signal.onAbort(reason => {
        if (isOver) return
        isOver = true
        row.cancelled++
        follower?.aborted(reason, performance.now() - started)
      })
      const finish = (frame: F): void => {
        isOver = true
        removeListener()
        const ms = performance.now() - started
        if (row.isTimed) addDuration(row, ms / 1000)
        follower?.ended(frame, ms)
        if (frame.kind === 'result') row.ok++
        else {
          row.error++
          countFailure(serverFailureOf(frame))
        }
      }
      const sink = (frame: F): void | Promise<void> => {
        if (!isOver && (frame.kind === 'result' || frame.kind === 'failure')) finish(frame)
        return exchange.sink(follower ? follower.pass(frame) : frame)
      }
      dispatch(follower ? { ...exchange, sink, record: follower } : { ...exchange, sink })
    }
  }

  return {
    count,
    rows: rows as readonly RequestCounts[],
    failures: (): readonly FailureCount[] => [...failures.values()],
  }
}

export type Metrics = Pick<ReturnType<typeof createMetrics>, 'rows' | 'failures'>

const addDuration = (row: RequestCounts, seconds: number): void => {
  let at = 0
  while (at < BUCKETS.length && seconds > (BUCKETS[at] as number)) at++
  row.buckets[at] = (row.buckets[at] as number) + 1
  row.seconds += seconds
}
