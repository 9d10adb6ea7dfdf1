import type { Upstream } from '../../protocol/exchange.ts'
import { startInThread } from '../thread/upstream.ts'
import type { MemoryStart } from './start.ts'

/** Opens a memory on a thread of its own: reading a long text and writing it take up to seconds. */
export const startMemoryThread = ({ log, ...data }: MemoryStart): Upstream =>
  startInThread({ entry: new URL('./thread-entry', import.meta.url), data, name: 'memory', log })
