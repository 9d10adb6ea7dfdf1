import { parentPort } from 'node:worker_threads'
import type { Exchange, Peer } from '../../src/protocol/exchange.ts'
import { OperationError } from '../../src/protocol/operation-error.ts'
import { MODERN } from '../../src/protocol/revisions.ts'
import { hostUpstream, logThrough } from '../../src/servers/thread/host.ts'
import { Json } from '../../src/wire/json/json.ts'

const log = parentPort && logThrough(parentPort).child({ part: 'scripted' })

/** A server in a thread: `crash` ends the thread, `count` sends notices as fast as they are taken. */
const dispatch = async ({ method, params, sink, caller }: Exchange): Promise<void> => {
  if (method === 'crash') throw new Error('out of order')
  const times = params.get('times')?.asNumber() ?? 0
  for (let at = 1; at <= times; at++) await sink({ kind: 'notice', method: 'counted', params: Json.of({ at }) })
  if (times > 0) log?.info({}, 'counted')
  void sink({ kind: 'result', result: Json.of({ params, who: caller.principal, can: caller.capabilities }) })
}

/** Operations for the gateway itself. */
const operations = {
  double: async (content: ReadableStream<Uint8Array>) =>
    content.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => {
          controller.enqueue(chunk)
          controller.enqueue(chunk)
        },
      }),
    ),
  refuse: async () => {
    throw new OperationError('missing', 'It is not there')
  },
  fail: async () => {
    throw new Error('a secret detail')
  },
  crash: async () => process.exit(1),
}

if (parentPort && log) {
  log.info({}, 'started')
  const peer: Peer = { revision: MODERN, asks: false, dispatch: exchange => void dispatch(exchange) }
  hostUpstream(parentPort, { open: async () => peer, close: async () => log.info({}, 'closed') }, operations)
}
