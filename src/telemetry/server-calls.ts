/** Counts of the requests to one server, or of the calls of one tool. Plain numbers, because every call updates them. */
export interface CallCounts {
  readonly server: string
  readonly tool: string | undefined // undefined: all requests to the server
  ok: number
  error: number
  seconds: number // sum of all durations
}

/** Counts one answer of a server; `tool` is undefined for requests other than tool calls. */
export type CountCall = (tool: string | undefined, isError: boolean, seconds: number) => void

/** Counts the answers of every server. */
export interface ServerCalls {
  of(server: string): CountCall
  /** Removes a server that is no longer configured. */
  forget(server: string): void
  rows(): readonly CallCounts[]
}

/** The label of tools that are not listed, and of those beyond the limit: callers can invent any number of names. */
export const OTHER_TOOL = 'other'
const MAX_TOOLS = 200 // of one server

interface Counts {
  readonly all: CallCounts
  readonly tools: Map<string, CallCounts>
}

export const createServerCalls = (): ServerCalls => {
  const servers = new Map<string, Counts>()

  const countsOf = (server: string): Counts => {
    const known = servers.get(server)
    if (known) return known
    const counts: Counts = { all: rowOf(server, undefined), tools: new Map() }
    servers.set(server, counts)
    return counts
  }

  const toolRow = ({ tools, all }: Counts, tool: string): CallCounts => {
    const known = tools.get(tool)
    if (known) return known
    if (tools.size >= MAX_TOOLS && tool !== OTHER_TOOL) return toolRow({ tools, all }, OTHER_TOOL)
    const row = rowOf(all.server, tool)
    tools.set(tool, row)
    return row
  }

  return {
    of: server => (tool, isError, seconds) => {
      const counts = countsOf(server)
      add(counts.all, isError, seconds)
      if (tool !== undefined) add(toolRow(counts, tool), isError, seconds)
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
