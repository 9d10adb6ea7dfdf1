/** Upper bounds of the duration buckets, in seconds. */
export const BUCKETS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
]

/** How the requests of one method ended that came in by one dialect. Plain numbers, because every call adds to them. */
export interface RequestCounts {
  readonly dialect: string
  readonly method: string
  readonly isTimed: boolean
  ok: number
  error: number
  cancelled: number
  seconds: number // all durations together
  readonly buckets: number[] // requests per bucket of duration, the last one beyond all bounds
}

/** A failure that was a server's, by name. */
export interface ServerFailure {
  readonly server: string
  readonly reason: string
}

interface Failures extends ServerFailure {
  count: number
}

/** As much of an exchange as is needed to count it. */
interface Counted<F> {
  readonly kind: string
  readonly method: string
  readonly signal: { onAbort(listener: () => void): () => void }
  readonly sink: (frame: F) => void | Promise<void>
}

interface Options<F> {
  /** Methods that have a row of their own; all others share one, because anybody can invent them. */
  readonly isKnown: (method: string) => boolean
  /** Those that last as long as their client likes. */
  readonly isStanding: (method: string) => boolean
  /** Whose failure it was, if it was a server's. */
  readonly blame: (frame: F) => ServerFailure | undefined
}

const OTHER = 'other'
const MOST_FAILURES = 256

/** Counts what passes. Costs a fraction of a microsecond per request; everything dearer happens when somebody asks. */
export const createMetrics = <F extends { readonly kind: string }>({ isKnown, isStanding, blame }: Options<F>) => {
  const rows: RequestCounts[] = []
  const dialects = new Map<string, Map<string, RequestCounts>>()
  const failures = new Map<string, Failures>()

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

  const note = (found: ServerFailure | undefined): void => {
    if (!found) return
    const key = `${found.server} ${found.reason}`
    const known = failures.get(key)
    if (known) known.count++
    else if (failures.size < MOST_FAILURES) failures.set(key, { ...found, count: 1 })
  }

  /** Wraps the way down, so that every request that takes it is counted under this dialect. */
  const count = <E extends Counted<F>>(dialect: string, dispatch: (exchange: E) => void): ((exchange: E) => void) => {
    const rowOf = rowFinder(dialect)
    return exchange => {
      if (exchange.kind !== 'request') return dispatch(exchange)
      const row = rowOf(exchange.method)
      const started = performance.now()
      let isOver = false
      const forget = exchange.signal.onAbort(() => {
        if (isOver) return
        isOver = true
        row.cancelled++
      })
      const finish = (frame: F): void => {
        isOver = true
        forget()
        if (row.isTimed) time(row, (performance.now() - started) / 1000)
        if (frame.kind === 'result') row.ok++
        else {
          row.error++
          note(blame(frame))
        }
      }
      const sink = (frame: F): void | Promise<void> => {
        if (!isOver && (frame.kind === 'result' || frame.kind === 'failure')) finish(frame)
        return exchange.sink(frame)
      }
      dispatch({ ...exchange, sink })
    }
  }

  return { count, rows: rows as readonly RequestCounts[], failures: (): readonly Failures[] => [...failures.values()] }
}

export type Metrics = Pick<ReturnType<typeof createMetrics>, 'rows' | 'failures'>

const time = (row: RequestCounts, seconds: number): void => {
  let at = 0
  while (at < BUCKETS.length && seconds > (BUCKETS[at] as number)) at++
  row.buckets[at] = (row.buckets[at] as number) + 1
  row.seconds += seconds
}
