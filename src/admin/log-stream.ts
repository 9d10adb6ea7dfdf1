import type { ServerResponse } from 'node:http'
import { PRIVATE_HEADERS } from '../fronts/http/response.ts'
import { LogHistory, type LogLine } from '../telemetry/log-history.ts'

const HEADERS = { 'content-type': 'application/x-ndjson', 'x-accel-buffering': 'no', ...PRIVATE_HEADERS }

const KEEP_ALIVE_MS = 30_000 // an empty line; HTTP clients end a response that is silent for minutes

/** Sends the last lines of the log, one JSON object per line: `?server=NAME` of one server, `?follow=1` also later lines. */
export const streamLog = (
  query: URLSearchParams,
  response: ServerResponse,
  history: LogHistory = new LogHistory(),
): void => {
  const server = query.get('server') ?? undefined
  let isBehind = false // the client reads slower than lines come: later lines are dropped
  const write = (line: LogLine): void => {
    if (!isBehind && (server === undefined || line.server === server))
      isBehind = !response.write(`${JSON.stringify(line)}\n`)
  }
  response.writeHead(200, HEADERS)
  response.write(
    history
      .lines(server)
      .map(line => `${JSON.stringify(line)}\n`)
      .join(''),
  )
  if (query.get('follow') === null) return void response.end()
  const leave = history.follow(write)
  const keepAlive = setInterval(() => void response.write('\n'), KEEP_ALIVE_MS).unref()
  response.on('drain', () => {
    isBehind = false
  })
  response.on('close', () => {
    clearInterval(keepAlive)
    leave()
  })
}
