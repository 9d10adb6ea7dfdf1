// The gateway in a process of its own that can be asked for its figures: `node --expose-gc --import tsx harness.ts FILE`.
import { setImmediate } from 'node:timers/promises'
import { type Gateway, startGateway } from '../../src/app/gateway.ts'
import { loadConfig } from '../../src/config/load.ts'
import { SILENT } from '../../src/telemetry/log.ts'

/** What the process holds after a forced collection. */
export interface Figures {
  readonly heapBytes: number
  readonly rssBytes: number
  readonly externalBytes: number // buffers, which the heap does not count
  readonly resources: Readonly<Record<string, number>> // by kind, whatever keeps the event loop alive
  readonly load: ReturnType<Gateway['load']>
}

const figures = async (gateway: Gateway): Promise<Figures> => {
  // Twice, with a turn between: finalizers of the first free what the second collects.
  for (let pass = 0; pass < 2; pass++) {
    globalThis.gc?.()
    await setImmediate()
  }
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  const { heapUsed, rss, external } = process.memoryUsage()
  return { heapBytes: heapUsed, rssBytes: rss, externalBytes: external, resources, load: gateway.load() }
}

const gateway = await startGateway(await loadConfig({ file: process.argv[2], env: {} }), { log: SILENT })
process.on('message', () => void figures(gateway).then(answer => process.send?.(answer)))
process.once('disconnect', () => process.exit())
await gateway.ready
process.send?.(gateway.origin)
