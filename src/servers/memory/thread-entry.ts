import { parentPort, workerData } from 'node:worker_threads'
import { hostUpstream, logThrough } from '../thread/host.ts'
import { type MemoryStart, startMemory } from './start.ts'

/** Where the thread of a memory begins. */
if (parentPort) {
  const options = workerData as Omit<MemoryStart, 'log'>
  hostUpstream(parentPort, startMemory({ ...options, log: logThrough(parentPort) }))
}
