import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { connectV1 } from '../../support/client-v1.ts'
import { nodeServer, startGatewayBefore } from '../../support/gateway.ts'

const SERVER = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))
const SECRET = 'order of ann: 4711'

it('what a process wrote last is told to its own caller, and neither to others nor on /readyz', async () => {
  const broken = JSON.stringify({ exit: 1, stderr: SECRET })
  const { url, close } = await startGatewayBefore([
    nodeServer('small', [SERVER, '{}']),
    nodeServer('broken', [SERVER, broken]),
  ])
  const client = await connectV1({ url })
  const fail = (name: string) => client.call(name, { words: SECRET }).catch((error: Error) => error.message)
  const readyz = async () => (await fetch(new URL('/readyz', url))).text()
  try {
    await expect.poll(readyz, { timeout: 15_000 }).toContain('exited with code 1')
    expect(await fail('small__die')).toContain(SECRET)
    expect(await fail('broken__echo')).not.toContain(SECRET)
    expect(await readyz()).not.toContain(SECRET)
  } finally {
    await client.close()
    await close()
  }
})
