import { type Daemon, findDaemon } from '../config/daemon-file.ts'
import { ConfigError } from '../config/problems.ts'
import { dataDirectoryOf, type FlagValues } from './usage.ts'

/** No daemon runs, or it does not answer; the message says what to do. */
export class DaemonError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DaemonError'
  }
}

/** The daemon of the data directory; throws a DaemonError if none runs. */
export const daemonOf = async (flags: FlagValues): Promise<Daemon> => {
  const data = dataDirectoryOf(flags)
  const daemon = await findDaemon(data)
  if (daemon) return daemon
  throw new DaemonError(`no daemon runs on ${data}; start one with "dragoman serve"`)
}

/** Sends a request to an endpoint of the daemon; a ConfigError has the daemon's reason if it is refused. */
export const requestDaemon = async (
  { origin, token, pid }: Daemon,
  path: string,
  body?: object, // given: POST
  signal?: AbortSignal,
): Promise<Response> => {
  const response = await fetch(origin + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((error: Error) => {
    const { cause } = error as { cause?: Error }
    throw new DaemonError(
      `the daemon at ${origin} (process ${pid}) does not answer: ${cause?.message ?? error.message}`,
    )
  })
  if (response.ok) return response
  const refusal = (await response.json().catch(() => ({}))) as { error?: { message?: string } }
  throw new ConfigError(refusal.error?.message ?? `the daemon at ${origin} answered ${response.status}`)
}

const POLL_MS = 50

/** Calls `isDone` until it is true or the time is over; returns the last result. */
export const waitUntil = async (ms: number, isDone: () => boolean | Promise<boolean>): Promise<boolean> => {
  const deadline = Date.now() + ms
  for (;;) {
    if (await isDone()) return true
    if (Date.now() > deadline) return false
    await new Promise(resolve => setTimeout(resolve, POLL_MS)) // keeps the process alive, unlike std/time
  }
}
