import { expect, onTestFinished, test } from 'vitest'
import { modern, send } from '../../support/raw.ts'
import { scriptedServer } from '../../support/scripted-server.ts'
import { startConfigured } from './configured.ts'

test.each([307, 308])('a server that answers %d with our own address reaches nothing of ours', async status => {
  const server = await scriptedServer((_, response) => {
    response.writeHead(status, { location: `${configured.origin.replace('127.0.0.1', 'localhost')}/mcp/demo` }).end()
  })
  const configured = await startConfigured({
    mcpServers: {
      demo: { builtin: 'demo' },
      remote: { url: server.url, allowCrossOriginRedirect: true },
      plain: { url: server.url },
    },
  })
  onTestFinished(async () => {
    await configured.close()
    await server.close()
  })
  await configured.gateway.ready
  const call = modern(1, 'tools/call', { name: 'example-echo', arguments: { message: 'hello' } })
  const failureAt = async (workspace: string) => (await send(configured.gateway.url(workspace), call)).json.error
  expect(await failureAt('remote')).toMatchObject({
    message: expect.stringContaining('address of this gateway itself'),
  })
  expect(await failureAt('plain')).toMatchObject({ message: expect.stringContaining('redirected to another origin') })
  expect(server.arrivals.length).toBeGreaterThan(0)
})
