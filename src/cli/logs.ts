import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { GatewayStatus } from '../protocol/status.ts'
import type { LogLine } from '../telemetry/log-history.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon } from './daemon-client.ts'
import { DATA_FLAG, type Flags, flagHelp, print, printError, readLine } from './usage.ts'

const FLAGS: Flags = {
  follow: { help: 'also show later lines, until interrupted' },
  ...DATA_FLAG,
  json: { help: 'print one JSON object per line' },
}

const HELP = `Usage: dragoman logs [SERVER] [flags]

Shows the last lines of the running daemon's log, with all lines that the processes of its servers wrote to stderr; those of one
server if it is named.

${flagHelp(FLAGS)}
`

/** Shows the log of the daemon. */
export const run: Run = async args => {
  const { flags, words } = readLine(args, FLAGS, 1)
  if (flags.help) return print(HELP)
  const [server] = words
  const daemon = await daemonOf(flags)
  if (server !== undefined) {
    const { servers } = (await (await requestDaemon(daemon, '/admin/status')).json()) as GatewayStatus
    const names = servers.map(({ name }) => name)
    if (!names.includes(server))
      return printError(`the daemon has no server ${JSON.stringify(server)}; it has ${names.join(', ')}`)
  }
  const query = new URLSearchParams({ ...(server !== undefined && { server }), ...(flags.follow && { follow: '1' }) })
  const { body } = await requestDaemon(daemon, `/admin/logs?${query}`)
  if (!body) return 0
  const lines = createInterface({ input: Readable.fromWeb(body), crlfDelay: Number.POSITIVE_INFINITY })
  try {
    for await (const line of lines) {
      if (process.stdout.destroyed) break
      if (line === '') continue // keeps the connection open
      print(flags.json ? `${line}\n` : logText(JSON.parse(line) as LogLine))
    }
  } catch {
    return printError('the daemon has ended')
  }
  return 0
}

/** One line of the log as text: time, level, server, message. */
export const logText = ({ time, level, server, text }: LogLine): string => {
  const clock = new Date(time).toISOString().slice(11, 23)
  return `${clock} ${level.padEnd(6)} ${server === undefined ? '' : `${server}: `}${text}\n`
}
