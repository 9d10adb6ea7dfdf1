import { describe, expect, test } from 'vitest'
import { isMethodOf } from '../../src/protocol/methods.ts'
import { runCli, startCli } from '../support/cli.ts'
import { SERVERS } from './cells.ts'
import type { MatrixServer } from './server.ts'

const FORM = {
  mode: 'form',
  message: 'Who?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
}
const SAMPLE = { messages: [{ role: 'user', content: { type: 'text', text: 'Who?' } }], maxTokens: 5 }

/** The command line that reaches the server directly. */
const lineTo = ({ config }: MatrixServer, command: string, ...words: string[]): string[] => {
  if (config.kind === 'remote') return [command, config.url, ...words]
  if (config.kind === 'process') return [command, ...words, '--', config.command, ...config.args]
  throw new Error(`no words for ${config.kind}`)
}

describe('call completes questions, progress, logs and cancellation', () => {
  test.each(SERVERS.map(kind => [kind.name, kind] as const))('at a server of %s', async (_, { revision, start }) => {
    const server = await start()
    try {
      const elicits = isMethodOf('elicitation/create', revision)
      server.tools.set('ask', async call => {
        call.progress(1, { total: 2, message: 'half' })
        call.log('info', 'about to ask')
        const answer = elicits
          ? await call.ask('n', 'elicitation/create', FORM)
          : await call.ask('n', 'sampling/createMessage', SAMPLE)
        return { content: [{ type: 'text', text: JSON.stringify(answer) }], other: 12345678901234567890n.toString() }
      })
      const answer = elicits ? ['--answer', 'name=Ann'] : ['--sampling-command', 'printf Ann']
      const done = await runCli(lineTo(server, 'call', 'ask', ...answer), { isTerminal: true })
      expect(done.code, done.stderr).toBe(0)
      expect(done.stdout).toContain('Ann')
      expect(done.stderr).toContain('[############------------]  50% half')
      expect(done.stderr).toContain('info: about to ask')

      server.arrivals.length = 0
      server.tools.set('slow', call => {
        call.progress(1)
        return new Promise(() => {})
      })
      const slow = startCli(lineTo(server, 'call', 'slow'))
      const arrived = await server.arrived('tools/call')
      slow.interrupt()
      expect(await slow.ended).toEqual({ code: 130, stdout: '', stderr: 'dragoman: cancelled while calling\n' })
      const isTold = () => arrived.isGone || server.of('notifications/cancelled').length > 0
      await expect.poll(isTold).toBe(true)
    } finally {
      await server.close()
    }
  })
})

describe('the other commands', () => {
  test.each(SERVERS.map(kind => [kind.name, kind] as const))('work with a server of %s', async (_, { start }) => {
    const server = await start()
    try {
      const lines = [
        [lineTo(server, 'prompt', 'p'), 'user: hello\n'],
        [lineTo(server, 'read', 'test://a'), 'content'],
        [lineTo(server, 'complete', 'p', 'x='), 'x\n'],
        [lineTo(server, 'resources'), 'test://a\ta\n'],
      ] as const
      const results = await Promise.all(lines.map(([line]) => runCli(line)))
      expect(results).toEqual(lines.map(([, stdout]) => ({ code: 0, stdout, stderr: '' })))

      const watching = startCli(lineTo(server, 'watch', 'test://a', '--json'))
      await expect.poll(watching.stderr).toContain('watching test://a')
      server.say('notifications/resources/updated', { uri: 'test://a' })
      await expect.poll(watching.stdout).toContain('"notifications/resources/updated"')
      watching.interrupt()
      expect((await watching.ended).code).toBe(130)

      const lists = startCli(lineTo(server, 'watch', 'lists'))
      await expect.poll(lists.stderr).toContain('watching lists')
      server.say('notifications/tools/list_changed')
      await expect.poll(lists.stdout).toMatch(/^\S+\tthe list of tools changed\n$/)
      lists.interrupt()
      expect((await lists.ended).code).toBe(130)
    } finally {
      await server.close()
    }
  })
})
