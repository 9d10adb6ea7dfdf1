import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startV1Sse } from '../../support/servers/sdk-v1-sse.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'
import type { Upstream } from './cells.ts'
import type { Programs } from './programs.ts'

/** A server that stands ready for the gateway. */
export interface Started {
  /** What the gateway's configuration says about it. */
  readonly entry: object
  /** It runs inside the gateway, or is started by it. */
  readonly isLocal?: true
  /** Where the suite can speak to it itself. */
  readonly url?: string
  close(): Promise<void>
}

const endpoint = async (
  starting: Promise<{ url: string; close(): Promise<void> }>,
  isDirect: boolean,
): Promise<Started> => {
  const { url, close } = await starting
  return { entry: { url }, ...(isDirect && { url }), close }
}

/** The gateway starts it, as often as it needs it. */
const program = (file: string): Started => ({
  entry: { command: process.execPath, args: [file] },
  isLocal: true,
  close: async () => undefined,
})

/** Starts what stands behind the gateway. */
export const UPSTREAMS: Record<Upstream, (programs: Programs) => Promise<Started>> = {
  demo: async () => ({ entry: { builtin: 'demo' }, isLocal: true, close: async () => undefined }),
  'sdk-v1-http': () => endpoint(startV1(), true),
  'sdk-v1-sse': () => endpoint(startV1Sse(), false),
  'sdk-v1-stdio': async programs => program(programs('support/servers/sdk-v1-stdio.js')),
  'sdk-v2-http': () => endpoint(startV2(), true),
  'sdk-v2-stdio': async programs => program(programs('support/servers/sdk-v2-stdio.js')),
}
