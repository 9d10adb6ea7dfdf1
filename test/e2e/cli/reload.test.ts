import { readFileSync } from 'node:fs'
import { mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { watchFile } from '../../../src/config/watch.ts'
import { call } from './call.ts'
import { runCommand } from './in-process.ts'
import { endPrograms, startServe } from './program.ts'

let folder: string
let file: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-reload-'))
  file = join(folder, 'mcp.json')
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

const CANARY = 'c4nary'
const REMOTE = { url: `http://127.0.0.1:1/mcp?key=${CANARY}`, headers: { authorization: `Bearer ${CANARY}` } }
const config = (servers: Record<string, object>, more: object = {}) =>
  JSON.stringify({ mcpServers: servers, workspaces: { default: { servers: '*', names: 'prefix' } }, ...more })
const [A, B] = [{ builtin: 'demo' }, { builtin: 'demo', concurrency: 5 }]

const namesAt = async (origin: string): Promise<Set<string | undefined>> => {
  const { result } = (await call(`${origin}/mcp`, 'tools/list')) as { result: { tools: { name: string }[] } }
  return new Set(result.tools.map(({ name }) => name.split('__')[0]))
}

/** Settles when a watcher of the file has reported that change. */
const seenByWatcher = async (change: () => Promise<void>): Promise<void> => {
  let reports = 0
  const unwatch = watchFile(file, () => reports++)
  await expect.poll(() => reports).toBe(1) // the first look
  await change()
  await expect.poll(() => reports).toBe(2)
  unwatch()
}

it('goes over to a file that is written, replaced or written in pieces, and says what changed', async () => {
  await writeFile(file, config({ a: A }))
  const program = await startServe(['--config', file])
  expect(await namesAt(program.origin)).toEqual(new Set(['a']))

  await writeFile(file, config({ a: A, b: B }))
  await program.saw(/"servers":\{"added":\["b"\]\},"workspaces":\{"changed":\["default"\]\}.*has changed/, 'stderr')
  expect(await namesAt(program.origin)).toEqual(new Set(['a', 'b']))

  await writeFile(join(folder, 'draft'), config({ b: B, far: REMOTE }))
  await rename(join(folder, 'draft'), file)
  await program.saw(/"servers":\{"removed":\["a"\],"added":\["far"\]\}/, 'stderr')
  expect(await namesAt(program.origin)).toEqual(new Set(['b']))

  const whole = config({ a: A })
  const half = await open(file, 'w')
  await half.write(whole.slice(0, 40))
  await program.saw(/the previous one stays in force: .* is not JSON: line 1/, 'stderr')
  expect(await namesAt(program.origin)).toEqual(new Set(['b']))
  await half.write(whole.slice(40))
  await half.close()
  await program.saw(/"servers":\{"removed":\["b","far"\],"added":\["a"\]\}/, 'stderr')
  expect(await namesAt(program.origin)).toEqual(new Set(['a']))
  expect(program.stderr()).not.toContain(CANARY)
  program.signal('SIGTERM')
  expect(await program.ended).toBe(0)
})

it('logs an invalid file once, again on SIGHUP, and names settings that need a restart', async () => {
  await writeFile(file, config({ a: A }))
  const program = await startServe(['--config', file])
  await writeFile(join(folder, 'draft'), config({ a: { builtin: 'dmeo' } }))
  await rename(join(folder, 'draft'), file)
  await program.saw(/the previous one stays in force: .*mcpServers\.a\.builtin: expected one of/, 'stderr')
  program.signal('SIGHUP')
  await program.saw(/(the previous one stays in force.*){2}/s, 'stderr')
  await writeFile(join(folder, 'draft'), config({ a: A, b: B }, { listen: { port: 1 }, limits: { batchSize: 7 } }))
  await rename(join(folder, 'draft'), file) // at once: what is half there would be another complaint
  await program.saw(/takes effect after a restart: limits\.batchSize/, 'stderr')
  expect(program.stderr().match(/the previous one stays in force/g)).toHaveLength(2)
  expect(program.stderr()).not.toContain('listen.port') // the flag wins, before and after
  expect(await namesAt(program.origin)).toEqual(new Set(['a', 'b']))
})

it('with --no-watch reloads the file only on SIGHUP', async () => {
  await writeFile(file, config({ a: A }))
  const program = await startServe(['--config', file, '--no-watch'])
  await seenByWatcher(() => writeFile(file, config({ b: B })))
  expect(await namesAt(program.origin)).toEqual(new Set(['a']))
  program.signal('SIGHUP')
  await program.saw(/has changed/, 'stderr')
  expect(await namesAt(program.origin)).toEqual(new Set(['b']))
  program.signal('SIGHUP')
  await program.saw(/the configuration is unchanged/, 'stderr')
})

it('without a file, SIGHUP is logged and has no effect', async () => {
  const program = await startServe()
  program.signal('SIGHUP')
  await program.saw(/there is no configuration file to reload/, 'stderr')
  expect((await fetch(`${program.origin}/healthz`)).status).toBe(200)
})

it('names the dragoman that uses the port', async () => {
  const data = join(folder, 'data')
  const first = await startServe([], { DRAGOMAN_DATA: data })
  const port = new URL(first.origin).port
  const serve = ['serve', '--demo', '--port', port]
  const second = await runCommand([...serve, '--ephemeral'], { env: { DRAGOMAN_DATA: data } })
  expect([second.code, second.stderr]).toEqual([
    2,
    expect.stringContaining(`port ${port} is in use by the dragoman with process id ${first.pid}`),
  ])
  const other = await runCommand(serve)
  expect([other.code, other.stderr]).toEqual([
    1,
    expect.stringContaining(`port ${port} on 127.0.0.1 is in use; stop the other program or choose another`),
  ])
})

it('refuses a data directory that another dragoman uses; one without state warns', async () => {
  const data = join(folder, 'shared')
  const first = await startServe([], { DRAGOMAN_DATA: data })
  const refused = await runCommand(['serve', '--demo', '--port', '0'], { env: { DRAGOMAN_DATA: data } })
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining(`${data} is in use by the dragoman with process id ${first.pid}`),
  ])
  const second = await startServe(['--ephemeral'], { DRAGOMAN_DATA: data })
  await second.saw(new RegExp(`"pid":${first.pid}.*another dragoman serves ${data}, at ${first.origin}`), 'stderr')
  expect(first.stderr()).not.toContain('another dragoman')
  const announced = () => JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')).origin
  expect(announced()).toBe(second.origin)
  second.signal('SIGTERM')
  expect(await second.ended).toBe(0)
  expect(announced()).toBe(first.origin) // it can be found again
})
