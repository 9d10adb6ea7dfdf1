import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Gateway } from '../../../src/app/gateway.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { modern, send } from '../../support/raw.ts'
import { list, shownIn, type Victim } from './twenty.ts'

const CHANGED = 'notifications/tools/list_changed'
const PAUSE_MS = 100 // between two calls of one server
const LONG = { timeout: 20_000 }

/** Calls every other server over and over, and keeps whatever was not right. */
const keepCalling = (url: string, others: readonly Victim[]) => {
  const wrong: unknown[] = []
  let calls = 0
  let isOver = false
  const work = others.map(async ({ config, tool, given = {} }) => {
    while (!isOver) {
      const params = { name: `${config.name}__${tool}`, arguments: given }
      const { json } = await send(url, modern(1, 'tools/call', params))
      calls++
      if (!json.result || json.result.isError) wrong.push([config.name, json])
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
  })
  return {
    wrong,
    /** Settles when so many more calls were made. */
    more: (count: number) => {
      const wanted = calls + count
      return expect.poll(() => calls, { timeout: 20_000 }).toBeGreaterThan(wanted)
    },
    stop: async () => {
      isOver = true
      await Promise.all(work)
    },
  }
}

/** Kills each of these servers while a client calls it and the others are called, and has it started again. */
export const killedAndStartedAgain = (
  started: () => { readonly gateway: Gateway; readonly victims: readonly Victim[] },
  names: readonly string[],
): void => {
  describe('a server among twenty that is killed during traffic and started again', () => {
    const clients: MatrixClient[] = []
    beforeAll(async () => {
      const url = started().gateway.url()
      clients.push(await sessionClient(url, '2025-11-25', {}), await statelessClient(url, {}))
      for (const client of clients) await client.listen()
      for (const client of clients) expect((await client.call('tools/list')).error).toBeUndefined()
      await vi.waitFor(async () => expect(shownIn(await list(started().gateway, 'default')).size).toBe(20), LONG)
    }, 30_000)
    afterAll(async () => {
      for (const client of clients) await client.close()
    })

    test.each(names)('%s', { timeout: 60_000 }, async name => {
      const { gateway, victims } = started()
      const stateOf = (): string | undefined =>
        gateway
          .status()
          .flatMap(({ servers }) => servers)
          .find(server => server.name === name)?.state
      const victim = victims.find(({ config }) => config.name === name) as Victim
      const traffic = keepCalling(
        gateway.url(),
        victims.filter(other => other !== victim),
      )
      const [client] = clients as [MatrixClient]
      const call = (tool: string) => client.call('tools/call', { name: `${name}__${tool}`, arguments: {} })
      try {
        expect((await call(victim.tool)).error).toBeUndefined()
        await traffic.more(20)
        const underWay = call(victim.slowTool)
        await traffic.more(20)
        await victim.kill()
        expect(await underWay).toMatchObject({
          error: { code: -32603, message: expect.stringContaining(`"${name}"`), data: { upstream: name } },
        })
        if (victim.revive) {
          const failures = []
          while (stateOf() !== 'down') failures.push(await call(victim.tool))
          for (const { error } of failures) expect(error?.message).toContain(`"${name}"`)
          expect((await call(victim.tool)).error?.message).toContain('It has been down since')
          const before = clients.map(changesHeard)
          await victim.revive()
          await expect
            .poll(() => clients.map(changesHeard).every((count, at) => count > (before[at] ?? 0)), LONG)
            .toBe(true)
        }
        await expect.poll(async () => (await call(victim.tool)).error, LONG).toBeUndefined()
        expect(stateOf()).toBe('ready')
        await expect.poll(async () => shownIn(await list(gateway, 'default')).size, LONG).toBe(20)
        await traffic.more(20)
      } finally {
        await traffic.stop()
      }
      expect(traffic.wrong).toEqual([])
    })
  })
}

const changesHeard = ({ received }: MatrixClient): number => received.filter(({ method }) => method === CHANGED).length
