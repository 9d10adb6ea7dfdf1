import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that systems give out by themselves: no other connection takes one before it is used. */
const [FIRST, AFTER] = [15_000, 32_000]
const ATTEMPTS = 50

/** A port of 127.0.0.1 that nothing listens on. */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(FIRST, AFTER)
    if (await isFree(port)) return port
  }
  throw new Error(`no free port between ${FIRST} and ${AFTER}`)
}

const isFree = async (port: number): Promise<boolean> => {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    await new Promise(resolve => server.close(resolve))
  }
}
