import { rm } from 'node:fs/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { modern, send } from '../../support/raw.ts'
import { createToken, type Guarded, newDataDirectory, startGuarded } from './guarded.ts'

const gateways: Guarded[] = []
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close()
})
const start = async (options: Parameters<typeof startGuarded>[0]): Promise<Guarded> => {
  const gateway = await startGuarded(options)
  gateways.push(gateway)
  return gateway
}

const PING = modern(1, 'tools/call', { name: 'example-ping', arguments: {} })
const ANYWHERE = { host: '0.0.0.0' }

describe('listening beyond loopback', () => {
  it('is refused without a token', async () => {
    const data = await newDataDirectory()
    await expect(startGuarded({ listen: ANYWHERE, data })).rejects.toThrow('refusing to listen on 0.0.0.0')
    await expect(startGuarded({ listen: { host: '::' }, data })).rejects.toThrow('refusing to listen on ::')
    await rm(data, { recursive: true })
  })

  it('is done with one, and says that it travels in the clear', async () => {
    const data = await newDataDirectory()
    const { headers } = await createToken(data)
    const gateway = await start({ listen: ANYWHERE, data })
    expect((await send(gateway.url, PING)).status).toBe(401)
    expect((await send(gateway.url, { ...PING, headers: { ...PING.headers, ...headers } })).status).toBe(200)
    expect(gateway.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', message: expect.stringContaining('unencrypted') }),
    )
  })

  it('is done where a token is required, though there is none yet', async () => {
    const gateway = await start({ listen: ANYWHERE, auth: { required: true } })
    expect((await send(gateway.url, PING)).status).toBe(401)
  })

  it('is done when told that everybody may come in, and says so', async () => {
    const gateway = await start({ listen: ANYWHERE, insecure: true })
    expect((await send(gateway.url, PING)).status).toBe(200)
    expect(gateway.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', message: expect.stringContaining('everybody who reaches') }),
    )
  })
})
