// The gateway in a process of its own that reports its errors and figures: `node --expose-gc --import tsx harness.ts FILE`.
import { setImmediate } from 'node:timers/promises'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { type Log, SILENT } from '../../../src/telemetry/log.ts'

/** What the process holds after a forced collection. */
export interface Figures {
  readonly heapBytes: number
  readonly resources: Readonly<Record<string, number>> // by kind, whatever keeps the event loop alive
  readonly load: ReturnType<Gateway['load']>
}

/** What the process is told, and what it says. */
export type Order = { readonly kind: 'figures' } | { readonly kind: 'swap'; readonly file: string }
export type Report =
  | { readonly kind: 'ready'; readonly origin: string }
  | { readonly kind: 'swapped' }
  | { readonly kind: 'figures'; readonly figures: Figures }
  | { readonly kind: 'error'; readonly text: string }

const say = (report: Report): void => void process.send?.(report)
const complain = (what: string, error: unknown): void =>
  say({ kind: 'error', text: `${what}: ${error instanceof Error ? error.stack : JSON.stringify(error)}` })

// Nothing may be logged as an error: what a peer sends is never a fault of the gateway.
const log: Log = {
  ...SILENT,
  error: (fields, message) => complain(message, 'err' in fields ? fields.err : fields),
  child: () => log,
}
process.on('uncaughtException', (error, origin) => complain(origin, error))

const figures = async (gateway: Gateway): Promise<Figures> => {
  for (let pass = 0; pass < 3; pass++) {
    globalThis.gc?.()
    await setImmediate()
  }
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  return { heapBytes: process.memoryUsage().heapUsed, resources, load: gateway.load() }
}

const load = (file: string | undefined) => loadConfig({ file, env: {} })
const gateway = await startGateway(await load(process.argv[2]), { log })
process.on('message', (order: Order) => {
  if (order.kind === 'figures') void figures(gateway).then(found => say({ kind: 'figures', figures: found }))
  else
    void load(order.file).then(snapshot => {
      gateway.swap(snapshot)
      say({ kind: 'swapped' })
    })
})
process.once('disconnect', () => process.exit())
await gateway.ready
say({ kind: 'ready', origin: gateway.origin })
