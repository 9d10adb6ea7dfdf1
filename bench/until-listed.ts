import { setTimeout as sleep } from 'node:timers/promises'
import { listTools } from './mcp-client.ts'

const MOST_WAIT_MS = 60_000

/** Waits until a workspace lists so many tools, on all pages together. A cursor of a list that has changed since fails. */
export const untilListed = async (url: string, least: number): Promise<void> => {
  const deadline = Date.now() + MOST_WAIT_MS
  for (;;) {
    const count = await listTools(url).then(
      tools => tools.length,
      () => 0,
    )
    if (count >= least) return
    if (Date.now() > deadline) throw new Error(`only ${count} of ${least} tools are listed at ${url}`)
    await sleep(200)
  }
}
