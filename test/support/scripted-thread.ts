import { parentPort } from 'node:worker_threads'
import type { Exchange, Peer } from '../../src/protocol/exchange.ts'
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

if (parentPort && log) {
  log.info({}, 'started')
  const peer: Peer = { revision: MODERN, asks: false, dispatch: exchange => void dispatch(exchange) }
  hostUpstream(parentPort, { open: async () => peer, close: async () => log.info({}, 'closed') })
}
