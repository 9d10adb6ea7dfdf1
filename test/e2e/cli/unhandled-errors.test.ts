import { afterAll, expect, it } from 'vitest'
import { call } from './call.ts'
import { endPrograms, startServe } from './program.ts'

afterAll(endPrograms)

/** Code that runs in the process of the gateway, as a bug in it would. */
const withBug = (code: string): Record<string, string> => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}`,
})

it.each([
  ['an exception in a callback', "process.on('SIGUSR2', () => { throw new Error('a bug') })", 'uncaughtException'],
  [
    'a rejection no code waits for',
    "process.on('SIGUSR2', () => void Promise.reject(new Error('a bug')))",
    'unhandledRejection',
  ],
])('a running gateway logs %s with its stack and keeps serving', async (_, code, origin) => {
  const program = await startServe(['--demo'], withBug(code))
  await program.saw(/demo +connected/)
  program.signal('SIGUSR2')
  const [line] = await program.saw(/^.*unhandled error; the gateway keeps serving.*$/m, 'stderr')
  expect(JSON.parse(line)).toMatchObject({ origin, err: { message: 'a bug', stack: expect.stringContaining(' at ') } })
  expect(JSON.stringify(await call(`${program.origin}/mcp`, 'tools/list'))).toContain('example-echo')
  program.signal('SIGTERM')
  expect(await program.ended).toBe(0)
})

it('an error that no code handles before the gateway listens ends the process', async () => {
  const program = startServe(['--demo'], withBug("process.nextTick(() => { throw new Error('a bug') })"))
  await expect(program).rejects.toThrow('it ended')
})
