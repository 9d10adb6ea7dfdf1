import { describe, expect, test } from 'vitest'
import { CLIENTS, serverOf } from '../../matrix/cells.ts'
import { pipeServer } from '../../matrix/pipe-server.ts'
import { CAPABILITIES, type MatrixServer } from '../../matrix/server.ts'
import { amongMany, namesIn } from './many.ts'

const CHANGED = 'notifications/tools/list_changed'
const TEXT = { content: [{ type: 'text', text: 'done' }] }
const KINDS = CLIENTS.filter(({ name }) => ['2026-07-28 stateless', '2025-11-25 streamable'].includes(name))

type Pipes = Awaited<ReturnType<typeof pipeServer>>

/** Lets every process of the server die, and be another server when it is started again. */
const replace = (server: MatrixServer | undefined, tools: readonly string[]): void => {
  server?.tools.clear()
  for (const name of tools) server?.tools.set(name, () => TEXT)
  for (const process of [...((server as Pipes | undefined)?.processes ?? [])]) process.destroy()
}

/** One that never says when its tools change. */
const silent = async (): Promise<MatrixServer> => {
  const server = await pipeServer('2025-06-18')
  const greet = server.methods.get('initialize')
  server.methods.set('initialize', params => ({ ...greet?.(params), capabilities: { ...CAPABILITIES, tools: {} } }))
  return server
}

describe.each([
  ['2025-06-18', () => pipeServer('2025-06-18')],
  ['2026-07-28', () => pipeServer('2026-07-28')],
  ['2025-06-18, which does not announce changes,', silent],
] as const)('a stdio server of %s that was killed', (_name, start) => {
  test.each(KINDS)('has its new tools announced to $name once the next call has started it again', async kind => {
    await amongMany({ pipe: start, other: serverOf('2026-07-28').start }, {}, async ({ servers, client }) => {
      const { pipe } = servers
      for (const name of ['same', 'old']) pipe?.tools.set(name, () => TEXT)
      const caller = await client(kind)
      await caller.listen()
      expect(namesIn((await caller.call('tools/list')).result, 'tools')).toEqual(['pipe__same', 'pipe__old'])
      expect((await caller.call('tools/call', { name: 'pipe__same', arguments: {} })).result).toMatchObject(TEXT)
      replace(pipe, ['same', 'new'])
      const heard = caller.heard(CHANGED)
      // Whoever calls before the gateway has seen it die is told so: a tool is not called twice.
      const callAgain = async () => (await caller.call('tools/call', { name: 'pipe__same', arguments: {} })).result
      await expect.poll(callAgain, { timeout: 8000 }).toMatchObject(TEXT)
      await heard
      expect(namesIn((await caller.call('tools/list')).result, 'tools')).toEqual(['pipe__same', 'pipe__new'])
    })
  })
})
