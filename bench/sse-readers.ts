// The process of the clients that open SSE channels and say nothing.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { serveJobs } from './jobs.ts'

/** Open so many channels more at that URL, or close all. */
export type ReaderJob = { readonly url: string; readonly count: number } | { readonly url: undefined }

const AT_ONCE = 100
const sockets: Socket[] = []

const openChannel = async (url: URL, fail: (error: Error) => void): Promise<void> => {
  const socket = connect(Number(url.port), url.hostname)
  sockets.push(socket)
  socket.on('error', fail)
  socket.write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nAccept: text/event-stream\r\n\r\n`)
  for (let text = ''; !text.includes('event: endpoint'); ) {
    const [chunk] = await once(socket, 'data')
    text += chunk
    if (!text.startsWith('HTTP/1.1 200')) throw new Error(`a channel was answered ${text.slice(0, 200)}`)
  }
  socket.on('end', () => fail(new Error('a channel was closed by the server')))
  socket.resume()
}

const openAll = async (url: URL, count: number, fail: (error: Error) => void): Promise<void> => {
  let begun = 0
  const open = async (): Promise<void> => {
    while (begun++ < count) await openChannel(url, fail)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, open))
}

const closeAll = async (): Promise<void> => {
  await Promise.all(
    sockets.splice(0).map(socket => {
      const closed = once(socket, 'close')
      socket.destroy()
      return closed
    }),
  )
}

serveJobs<ReaderJob, number>(async (job, fail) => {
  if (job.url === undefined) await closeAll()
  else await openAll(new URL(job.url), job.count, fail)
  return sockets.length
})
