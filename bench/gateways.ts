// Gateways in one process, each on a port of its own, so that what they are compared by is not how V8 compiled each of them,
// or where their memory lies: two processes with the same settings differ by up to a tenth.
import { setFlagsFromString } from 'node:v8'
import { serveJobs } from './jobs.ts'

/** One gateway to start. */
export interface HostedGateway {
  readonly config: object
  readonly dataDir: string
}

/** The package's exports, which the benchmark uses as they are built. */
interface Package {
  startGateway(options: HostedGateway & { readonly port: number }): Promise<{ readonly url: string }>
}

// As the command sets them.
setFlagsFromString('--no-allocation-site-pretenuring')
setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000')
const { startGateway }: Package = await import(new URL('../../dist/index.mjs', import.meta.url).href)

serveJobs(async (gateways: readonly HostedGateway[]) => {
  const urls: string[] = []
  for (const gateway of gateways) urls.push((await startGateway({ ...gateway, port: 0 })).url)
  return { urls, pid: process.pid }
})
