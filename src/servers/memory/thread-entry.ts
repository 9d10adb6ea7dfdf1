import { parentPort, workerData } from 'node:worker_threads'
import { hostUpstream, logThrough } from '../thread/host.ts'
import { type MemoryOptions, startMemory } from './start.ts'

// The module a memory server's thread starts with. The thread keeps long reads and writes off the gateway's event loop.
if (parentPort) {
  const options = workerData as Omit<MemoryOptions, 'log'>
  const server = startMemory({ ...options, log: logThrough(parentPort) })
  hostUpstream(parentPort, server, { ...server.operations })
}
