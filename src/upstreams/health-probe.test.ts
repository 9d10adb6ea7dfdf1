import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { closeAll, connectSmall, eventually } from '../../test/support/processes.ts'
import { connectScripted } from '../../test/support/remote-upstream.ts'
import { callerOf, exchangeWith, legacy, modern, type Script } from '../../test/support/scripted-server.ts'

afterEach(closeAll)

const connect = async (script: Script) => {
  const { server, upstream } = await connectScripted(script)
  return { server, look: () => upstream.probe?.(), upstream }
}

const refuse = (status: number): Script => {
  return (_arrived, response) => void response.writeHead(status).end()
}

describe('a health probe of a remote server', () => {
  it('is one request that opens no session, in either era', async () => {
    for (const script of [modern(refuse(500)), legacy(refuse(500)), refuse(404), refuse(405)]) {
      const { server, look } = await connect(script)
      for (let i = 0; i < 5; i++) expect(await look()).toBe(true)
      expect(server.arrivals.map(({ body, method }) => body.method ?? method)).toEqual(Array(5).fill('server/discover'))
    }
  })

  it('says why there is no answer', async () => {
    for (const [status, reason] of [
      [401, 'upstream_auth'],
      [503, 'upstream_unreachable'],
    ] as const) {
      const { look } = await connect(refuse(status))
      await expect(look()).rejects.toMatchObject({ reason })
    }
    const { server, look } = await connect(refuse(200))
    await server.close()
    await expect(look()).rejects.toMatchObject({ reason: 'upstream_unreachable' })
  })

  it('is not sent after the upstream was closed', async () => {
    const { server, look, upstream } = await connect(refuse(404))
    await upstream.close()
    expect(await look()).toBe(false)
    expect(server.arrivals).toEqual([])
  })
})

describe.each(['legacy', 'modern'])('a look at a process (%s)', era => {
  it('starts none', async () => {
    const { upstream, living } = connectSmall({ era })
    expect(await upstream.probe?.()).toBe(false)
    expect(living()).toEqual([])
  })

  it('is a ping, and does not keep an idle process from being ended', async () => {
    const { upstream, open, living } = connectSmall({ era }, { limits: { idleMs: 400 } })
    await open()
    expect(await upstream.probe?.()).toBe(true)
    const looking = setInterval(() => void upstream.probe?.().catch(() => {}), 50)
    onTestFinished(() => clearInterval(looking))
    await eventually(living).toEqual([])
  })

  it('asks nothing while a call is under way', async () => {
    const { upstream, open } = connectSmall({ era })
    const peer = await open()
    const call = exchangeWith(peer, 'tools/call', { params: { name: 'wait', arguments: {} }, caller: callerOf() })
    expect(await upstream.probe?.()).toBe(false)
    call.abort.abort({ kind: 'gone' })
  })

  it('ends a process that does not answer', async () => {
    const { upstream, open, living } = connectSmall(
      { era },
      { server: { timeoutMs: 300 }, options: { pingMs: 100 }, limits: { exitMs: 50, termMs: 50 } },
    )
    await open()
    const [pid] = living() as [number]
    process.kill(pid, 'SIGSTOP')
    await expect(upstream.probe?.()).rejects.toMatchObject({ reason: 'upstream_timeout' })
    await eventually(living).toEqual([])
  }, 20_000)
})
