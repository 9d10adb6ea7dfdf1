// The process of clients that open sessions and end them: what a session costs the contestant.
import { openSession } from './caller.ts'
import { Connection } from './connection.ts'
import { serveJobs } from './jobs.ts'
import type { Target } from './peer.ts'
import { cpuMicros } from './process-figures.ts'
import { endSession } from './requests.ts'

/** Open sessions on so many connections: at most so many, for about so long. */
export interface OpenJob {
  readonly target: Target
  readonly connections: number
  readonly most: number
  readonly milliseconds: number
  readonly endsEach?: boolean // each is ended before the next is opened, and its end is charged; else all end afterwards
}

export interface OpenFigures {
  readonly sessions: number
  readonly cpuMicrosPerSession?: number // none: the server has no sessions
}

serveJobs<OpenJob, OpenFigures>(async ({ target, connections, most, milliseconds, endsEach = false }, fail) => {
  const to = { url: new URL(target.url) }
  const open: { readonly connection: Connection; readonly session: string }[] = []
  const sockets = await Promise.all(Array.from({ length: connections }, () => Connection.open(to.url, fail)))
  const end = (connection: Connection, session: string): Promise<unknown> =>
    new Promise(resolve => connection.call(endSession(to, session), resolve))
  const before = cpuMicros(target.pid)
  const last = performance.now() + milliseconds
  let begun = 0
  let sessions = 0
  const work = async (connection: Connection): Promise<void> => {
    while (begun < most && performance.now() < last) {
      begun++
      const session = await openSession(connection, to)
      if (session === undefined) return
      if (endsEach) await end(connection, session)
      else open.push({ connection, session })
      sessions++
    }
  }
  await Promise.all(sockets.map(work))
  const cpu = cpuMicros(target.pid) - before
  const endAll = async (connection: Connection): Promise<void> => {
    for (const each of open) if (each.connection === connection) await end(connection, each.session)
    connection.close()
  }
  await Promise.all(sockets.map(endAll))
  return { sessions, ...(sessions > 0 && { cpuMicrosPerSession: cpu / sessions }) }
})
