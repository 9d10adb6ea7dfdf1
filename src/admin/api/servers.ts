// What the owner does with one server: `POST /admin/servers/{name}/{action}`. Types only: the console imports this file.

import type { ServerStatus } from '../../protocol/status.ts'
import type { SizedTool } from '../../protocol/tool-size.ts'

/**
 * - `start`: ends what `stop` did; a server that the configuration disables runs until the gateway restarts.
 * - `stop`: no call reaches the server and its processes end, until `start` or a restart of the gateway.
 * - `restart`: its connections and processes end, and the gateway connects anew.
 * - `retry`: a server that is not ready is probed at once.
 */
export type ServerAction = 'start' | 'stop' | 'restart' | 'retry'

/** The answer of every action. */
export interface ServerActionResult {
  readonly server: ServerStatus // after the action; a server that connects may not be ready yet
}

/** `GET /admin/servers/{name}/tool-sizes`, the largest first. */
export interface ServerToolSizes {
  readonly tools: readonly SizedTool[]
}
