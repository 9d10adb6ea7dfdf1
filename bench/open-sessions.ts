// The process of clients that open sessions one after the other and end them: what opening one costs the contestant.
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
}

export interface OpenFigures {
  readonly sessions: number
  readonly cpuMicrosPerSession?: number // none: the server has no sessions
}

serveJobs<OpenJob, OpenFigures>(async ({ target, connections, most, milliseconds }, fail) => {
  const url = new URL(target.url)
  const opened: { readonly connection: Connection; readonly session: string }[] = []
  const sockets = await Promise.all(Array.from({ length: connections }, () => Connection.open(url, fail)))
  const before = cpuMicros(target.pid)
  const end = performance.now() + milliseconds
  let begun = 0
  const work = async (connection: Connection): Promise<void> => {
    while (begun < most && performance.now() < end) {
      begun++
      const session = await openSession(connection, url)
      if (session === undefined) return
      opened.push({ connection, session })
    }
  }
  await Promise.all(sockets.map(work))
  const cpu = cpuMicros(target.pid) - before
  const endAll = async (connection: Connection): Promise<void> => {
    for (const each of opened)
      if (each.connection === connection)
        await new Promise(resolve => connection.call(endSession(url, each.session), resolve))
    connection.close()
  }
  await Promise.all(sockets.map(endAll))
  return { sessions: opened.length, ...(opened.length > 0 && { cpuMicrosPerSession: cpu / opened.length }) }
})
