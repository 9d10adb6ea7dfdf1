import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { callTool, closeAll, connectSmall, SERVER } from '../../../test/support/processes.ts'
import { callerOf, exchangeWith } from '../../../test/support/scripted-server.ts'
import { NEVER } from '../../protocol/cancellation.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { Message } from '../../wire/json-rpc.ts'
import { ProcessHost } from '../process/process-host.ts'
import { openProcess } from './open-process.ts'
import type { Pipe } from './pipe.ts'
import { createStdioLink } from './stdio-link.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dragoman-opening-'))
})
afterEach(async () => {
  await closeAll()
  rmSync(folder, { recursive: true })
})

/** The small server, unless a file is there: then it leaves a trace in it and is gone. */
const FRAGILE = `
const { appendFileSync, existsSync } = require('node:fs')
if (existsSync(process.env.BROKEN)) { appendFileSync(process.env.BROKEN, 'x'); process.exit(1) }
import(process.env.SERVER)`

it('limits the starts of a server that crashes, however many callers want it', async () => {
  const broken = join(folder, 'broken')
  const args = ['-e', FRAGILE, 'small', JSON.stringify({ era: 'legacy' })]
  const { open } = connectSmall({}, { server: { args, env: { BROKEN: broken, SERVER } } })
  await callTool(await open(), 'echo', { text: 'hello' })
  const callers = Array.from({ length: 20 }, (_, i) => callerOf({ session: `s${i}`, revision: '2025-11-25' }))
  const peers = await Promise.all(callers.map(open))
  writeFileSync(broken, '')
  const calls = peers.map(peer => exchangeWith(peer, 'tools/call', { params: { name: 'echo', arguments: {} } }))
  for (const call of calls) await call.final()
  // Five until it counts as broken, and those that were being started meanwhile.
  expect(readFileSync(broken, 'utf8').length).toBeLessThan(10)
}, 20_000)

it('logs no configured secret that a server prints to stdout', async () => {
  const { log, lines } = createTestLog()
  const secret = 'tok-1234567890'
  const text = `console.log('x'.repeat(190) + ' ' + process.env.KEY); process.exit(1)`
  const { open } = connectSmall({}, { server: { args: ['-e', text], env: { KEY: secret } }, options: { log } })
  await expect(open()).rejects.toThrow('exited with code 1')
  expect(lines.some(({ message }) => message.includes('writes text to stdout'))).toBe(true)
  expect(JSON.stringify(lines)).not.toContain(secret.slice(0, 6))
})

/** Refuses the handshake, talks on, and leaves a trace when it has said a lot. */
const TALKATIVE = `
process.stdin.once('data', () => {
  process.stdout.write('{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"no"}}\\n')
  setTimeout(() => {
    process.stdout.write('{"jsonrpc":"2.0","method":"notifications/message","params":{}}\\n'.repeat(1000), () => {
      require('node:fs').writeFileSync(process.env.SAID, '')
      process.exit(0)
    })
  }, 100)
})`

it('keeps no message of a server whose handshake has failed', async () => {
  const said = join(folder, 'said')
  const { config } = connectSmall({}, { server: { args: ['-e', TALKATIVE], env: { SAID: said } } })
  const link = createStdioLink(config, { log: SILENT, host: new ProcessHost(1) })
  let pipe: Pipe | undefined
  const start = async (): Promise<Pipe> => {
    pipe = await link.start()
    return pipe
  }
  const opening = openProcess({ ...link, start }, { capabilities: Json.empty }, 'legacy', NEVER)
  await expect(opening).rejects.toThrow('refused initialize')
  await link.endAll()
  expect(existsSync(said)).toBe(true)
  const kept: Message[] = []
  pipe?.readBy({ message: message => void kept.push(message), gone: () => {} })
  expect(kept).toEqual([])
})
