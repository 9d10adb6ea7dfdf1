import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { endPrograms } from '../cli/program.ts'
import { CLIENT_FLOWS } from './secrets/client-flows.ts'
import { readOutputs, watchEvents } from './secrets/outputs.ts'
import { SERVER_FLOWS } from './secrets/server-flows.ts'
import { WAYS } from './secrets/ways.ts'
import { startWorld } from './secrets/world.ts'

afterAll(endPrograms)
const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const FLOWS = { ...SERVER_FLOWS, ...CLIENT_FLOWS }

/** What each output shows besides, to know that it was read. */
const SHOWN: Readonly<Record<string, string>> = {
  log: 'user logged in to a server',
  'the audit log': '"server_login"',
  telemetry: 'tools/call',
  '/metrics': 'dragoman_',
  '/admin/events': 'event: recording',
  '/admin/recordings/{id}': 'far__echo',
  '/admin/recordings/export': 'far__echo',
  '/admin/logins/servers': 'ada',
  '/admin/logins/servers/{server}/steps': 'error_description',
  '/admin/config': 'mcpServers',
}

describe.each(Object.entries(WAYS))('a gateway %s', (_, { start, problem }) => {
  test('shows and writes no secret of any flow', { timeout: 120_000 }, async ({ skip }) => {
    const missing = problem?.()
    if (missing !== undefined) return skip(missing)
    const world = await startWorld(start)
    closing.push(world.close)
    const events = await watchEvents(world)
    for (const run of Object.values(FLOWS)) await run(world)
    for (const peer of Object.values(world.peers)) if ('secrets' in peer) world.secrets.push(...peer.secrets)
    const outputs = await readOutputs(world, events)
    for (const [output, text] of Object.entries(SHOWN)) expect(outputs[output], output).toContain(text)
    const searched = [...new Set(world.secrets)].filter(text => text.length >= 8)
    expect(searched.length).toBeGreaterThan(150)
    const found = Object.entries(outputs).flatMap(([output, text]) =>
      searched.filter(each => text.includes(each)).map(each => `${output}: ${each}`),
    )
    expect(found).toEqual([])
    const withArguments = Object.keys(outputs).filter(output => outputs[output]?.includes(world.argument))
    expect(withArguments.sort()).toEqual(['/admin/recordings/export', '/admin/recordings/{id}'])
  })
})
