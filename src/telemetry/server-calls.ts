import { CallHistory, type CallHistoryRows } from './call-history.ts'

/** Counts of the requests to one server, or of the calls of one tool. Plain numbers, because every call updates them. */
export interface CallCounts {
  readonly server: string
  readonly tool: string | undefined // undefined: all requests to the server
  ok: number
  error: number
  seconds: number // sum of all durations
}

/** Counts one answer of a server; `tool` is undefined for requests other than tool calls, `error` for results. */
export type CountCall = (tool: string | undefined, error: string | undefined, seconds: number) => void

/** Counts the answers of every server. */
export interface ServerCalls {
  of(server: string): CountCall
  /** Removes a server that is no longer configured. */
  forget(server: string): void
  rows(): readonly CallCounts[]
  /** What is known of the calls of a server; undefined: there were none. */
  activityOf(server: string): CallActivity | undefined
}

/** The calls of one server since the gateway has started, and lately. */
export interface CallActivity {
  readonly calls: number
  readonly errors: number
  readonly lastError?: { readonly at: number; readonly message: string } | undefined // Unix time in milliseconds
  readonly history?: CallHistoryRows | undefined // undefined: there was no call in the last ten minutes
}

/** The label of tools that are not listed, and of those beyond the limit: callers can invent any number of names. */
export const OTHER_TOOL = 'other'
const MAX_TOOLS = 200 // of one server
const LONGEST_MESSAGE = 2000 // characters of an error

interface Counts {
  readonly all: CallCounts
  readonly tools: Map<string, CallCounts>
  readonly history: CallHistory
  lastError: { readonly at: number; readonly message: string } | undefined
}

export const createServerCalls = (): ServerCalls => {
  const servers = new Map<string, Counts>()

  const countsOf = (server: string): Counts => {
    const known = servers.get(server)
    if (known) return known
    const all = rowOf(server, undefined)
    const counts: Counts = { all, tools: new Map(), history: new CallHistory(), lastError: undefined }
    servers.set(server, counts)
    return counts
  }

  const toolRow = ({ tools, all }: Pick<Counts, 'tools' | 'all'>, tool: string): CallCounts => {
    const known = tools.get(tool)
    if (known) return known
    if (tools.size >= MAX_TOOLS && tool !== OTHER_TOOL) return toolRow({ tools, all }, OTHER_TOOL)
    const row = rowOf(all.server, tool)
    tools.set(tool, row)
    return row
  }

  return {
    of: server => (tool, error, seconds) => {
      const counts = countsOf(server)
      const isError = error !== undefined
      const now = Date.now()
      add(counts.all, isError, seconds)
      counts.history.add(isError, seconds * 1000, now)
      if (isError) counts.lastError = { at: now, message: error.slice(0, LONGEST_MESSAGE) }
      if (tool !== undefined) add(toolRow(counts, tool), isError, seconds)
    },
    activityOf: server => {
      const counts = servers.get(server)
      if (!counts) return undefined
      const { all, lastError, history } = counts
      return { calls: all.ok + all.error, errors: all.error, lastError, history: history.read(Date.now()) }
    },
    forget: server => void servers.delete(server),
    rows: () => [...servers.values()].flatMap(({ all, tools }) => [all, ...tools.values()]),
  }
}

const rowOf = (server: string, tool: string | undefined): CallCounts => ({ server, tool, ok: 0, error: 0, seconds: 0 })

const add = (row: CallCounts, isError: boolean, seconds: number): void => {
  if (isError) row.error++
  else row.ok++
  row.seconds += seconds
}
