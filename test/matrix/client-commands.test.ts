import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isMethodOf } from '../../src/protocol/methods.ts'
import { isModern, MODERN, OLDEST, REVISIONS, type Revision } from '../../src/protocol/revisions.ts'
import { runCli, startCli, startTestDaemon } from '../support/cli.ts'
import { ALL_SERVERS, serverOf } from './cells.ts'
import { type MatrixServer, ToolError } from './server.ts'
import { sessionServer } from './session-server.ts'

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const SLOW = { timeout: 10_000 } // on a busy machine

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

/** A call with a question, progress and a log message, then one that is cancelled; `line` is the command line of a call. */
const completeCalls = async (server: MatrixServer, revision: Revision, line: (...words: string[]) => string[]) => {
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
  const done = await runCli(line('ask', ...answer), { isTerminal: true })
  expect(done.code, done.stderr).toBe(0)
  expect(done.stdout).toContain('Ann')
  // Progress got its message in 2025-03-26.
  expect(done.stderr).toContain(`[############------------]  50%${revision === OLDEST ? '' : ' half'}`)
  expect(done.stderr).toContain('info: about to ask')

  server.arrivals.length = 0
  server.tools.set('slow', call => {
    call.progress(1)
    return new Promise(() => {})
  })
  const slow = startCli(line('slow'))
  const arrived = await server.arrived('tools/call')
  slow.interrupt()
  expect(await slow.ended).toEqual({ code: 130, stdout: '', stderr: 'dragoman: cancelled while calling\n' })
  const isTold = () => arrived.isGone || server.of('notifications/cancelled').length > 0
  await expect.poll(isTold, SLOW).toBe(true)
}

describe('call completes questions, progress, logs and cancellation', () => {
  test.each(ALL_SERVERS.map(kind => [kind.name, kind] as const))('at a server of %s', async (_, kind) => {
    const server = await kind.start()
    try {
      await completeCalls(server, kind.revision, (...words) => lineTo(server, 'call', ...words))
    } finally {
      await server.close()
    }
  })

  const LEGACY = REVISIONS.filter(revision => !isModern(revision))
  const SPOKEN: readonly (readonly [Revision, string])[] = [
    ...REVISIONS.map(revision => [revision, 'http'] as const),
    ...LEGACY.map(revision => [revision, 'sse'] as const),
    ...REVISIONS.map(revision => [revision, 'stdio'] as const),
  ]

  describe.each(['2025-11-25', MODERN] as const)('at the gateway before a server of %s', upstream => {
    let server: MatrixServer
    let daemon: Awaited<ReturnType<typeof startTestDaemon>>
    beforeAll(async () => {
      server = await serverOf(upstream).start()
      daemon = await startTestDaemon({ mcpServers: { server: { url: (server.config as { url: string }).url } } })
    })
    afterAll(async () => {
      await daemon.close()
      await server.close()
    })

    test.each(SPOKEN)('in %s over %s', async (revision, transport) => {
      const chosen = ['--revision', revision, '--transport', transport]
      const { origin, data } = daemon
      await completeCalls(server, revision, (...words) =>
        transport === 'stdio'
          ? ['call', ...words, ...chosen, '--', process.execPath, MAIN, 'stdio', '--data', data]
          : ['call', `${origin}/${transport === 'sse' ? 'sse' : 'mcp'}`, ...words, ...chosen],
      )
    })
  })
})

describe('the other commands', () => {
  test.each(ALL_SERVERS.map(kind => [kind.name, kind] as const))('work with a server of %s', async (_, { start }) => {
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
      await expect.poll(watching.stderr, SLOW).toContain('watching test://a')
      server.say('notifications/resources/updated', { uri: 'test://a' })
      await expect.poll(watching.stdout, SLOW).toContain('"notifications/resources/updated"')
      watching.interrupt()
      expect((await watching.ended).code).toBe(130)

      const lists = startCli(lineTo(server, 'watch', 'lists'))
      await expect.poll(lists.stderr, SLOW).toContain('watching lists')
      server.say('notifications/tools/list_changed')
      await expect.poll(lists.stdout, SLOW).toMatch(/^\S+\tthe list of tools changed\n$/)
      lists.interrupt()
      expect((await lists.ended).code).toBe(130)
    } finally {
      await server.close()
    }
  })
})

test('a server that asks for roots as soon as it is initialized gets them', async () => {
  const server = await sessionServer('2025-06-18')
  void server.arrived('notifications/initialized').then(() => server.askOutside('roots/list', {}))
  server.tools.set('wait', async () => {
    await expect.poll(() => server.arrivals.filter(({ message }) => 'result' in message).length, SLOW).toBe(1)
    return { content: [{ type: 'text', text: 'done' }] }
  })
  try {
    expect(await runCli(lineTo(server, 'call', 'wait', '--root', '/tmp'))).toEqual({
      code: 0,
      stdout: 'done\n',
      stderr: '',
    })
    const answer = server.arrivals.find(({ message }) => 'result' in message)?.message
    expect(answer).toMatchObject({ result: { roots: [{ uri: 'file:///tmp', name: 'tmp' }] } })
  } finally {
    await server.close()
  }
})

test('a server that refuses a call until a link was opened is called again', async () => {
  const server = await sessionServer('2025-11-25')
  let isOpened = false
  server.tools.set('pay', () => {
    if (isOpened) return { content: [{ type: 'text', text: 'paid' }] }
    isOpened = true
    setTimeout(() => server.say('notifications/elicitation/complete', { elicitationId: 'e1' }))
    const elicitations = [{ mode: 'url', url: 'https://x.test/pay', message: 'Pay', elicitationId: 'e1' }]
    throw new ToolError(-32042, 'links', { elicitations })
  })
  try {
    expect(await runCli(lineTo(server, 'call', 'pay', '--accept'))).toEqual({
      code: 0,
      stdout: 'paid\n',
      stderr: 'the server asks to open https://x.test/pay\n',
    })
  } finally {
    await server.close()
  }
})

test('Ctrl-C during a question ends the call that the daemon keeps for the answer', async () => {
  const server = await sessionServer('2025-06-18')
  server.tools.set('ask', async call => {
    const { action } = await call.ask('n', 'elicitation/create', FORM)
    return { content: [{ type: 'text', text: String(action) }] }
  })
  const { url } = server.config as { url: string }
  const daemon = await startTestDaemon({ mcpServers: { legacy: { url } } })
  try {
    const cli = startCli(['call', 'legacy/ask', '--data', daemon.data], { isTerminal: true, env: { NO_COLOR: '1' } })
    await expect.poll(cli.stderr, SLOW).toContain('name:')
    cli.interrupt()
    expect((await cli.ended).code).toBe(130)
    await expect
      .poll(() => server.arrivals.map(({ message }) => message), SLOW)
      .toContainEqual(expect.objectContaining({ result: { action: 'cancel' } }))
  } finally {
    await daemon.close()
    await server.close()
  }
})
