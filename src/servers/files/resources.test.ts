import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { noticesOf, type Talk, talk } from '../../../test/support/embedded.ts'
import { createProject, type Project } from '../../../test/support/project.ts'
import type { Frame } from '../../protocol/exchange.ts'
import type { DefinedServer } from '../define/define.ts'
import { files } from './files.ts'

let project: Project
let server: DefinedServer
const start = (content: Readonly<Record<string, string | Buffer>> = {}): void => {
  project = createProject(content)
  server = files({ root: project.root, version: '1' })
}
afterEach(async () => {
  await server.close()
  project.remove()
})

const read = async (uri: string) =>
  ((await (await talk(server, 'resources/read', { uri })).result()) as { contents: unknown[] }).contents[0]

describe('files as resources', () => {
  test('text as it is, other bytes in base64, each with its type', async () => {
    start({ 'a b/ü.md': '# hi', 'p.png': Buffer.from([0x89, 0]), plain: 'x' })
    expect(await read('file:///a%20b/%C3%BC.md')).toMatchObject({ mimeType: 'text/markdown', text: '# hi' })
    expect(await read('file:///p.png')).toMatchObject({ mimeType: 'image/png', blob: 'iQA=' })
    expect(await read('file:///plain')).toEqual({ uri: 'file:///plain', mimeType: 'text/plain', text: 'x' })
  })

  test('are listed, and listed anew when there are others', async () => {
    start({ 'src/a.ts': '', 'b c.md': '', 'node_modules/x.js': '' })
    const list = async () =>
      ((await (await talk(server, 'resources/list')).result()) as { resources: { uri: string }[] }).resources.map(
        ({ uri }) => uri,
      )
    expect(await list()).toEqual(['file:///b%20c.md', 'file:///src/a.ts'])
    project.write('new', '')
    expect(await list()).toEqual(['file:///b%20c.md', 'file:///new', 'file:///src/a.ts'])
  })

  test('can all be read by one template, whose path is completed', async () => {
    start({ 'src/a.ts': '', 'src/deep/b.ts': '', 'other/x': '' })
    const listed = await (await talk(server, 'resources/templates/list')).result()
    expect(listed).toMatchObject({ resourceTemplates: [{ uriTemplate: 'file:///{+path}' }] })
    const complete = async (value: string) => {
      const ref = { type: 'ref/resource', uri: 'file:///{+path}' }
      const answer = await talk(server, 'completion/complete', { ref, argument: { name: 'path', value } })
      return ((await answer.result()) as { completion: { values: string[] } }).completion.values
    }
    expect(await complete('')).toEqual(['other/', 'src/'])
    expect(await complete('src/d')).toEqual(['src/deep/'])
    expect(await complete('../')).toEqual([])
  })

  test.each([
    'file:///../outside/secret.txt',
    'file:///%2e%2e/outside/secret.txt',
    'file:///%252e%252e/outside/secret.txt',
    'file:////etc/passwd',
    'file:///%2fetc/passwd',
    'file:///a%00b',
    'file:///link',
    'file:///nowhere',
    'file:///folder',
    'file://host/a',
    'http:///a',
  ])('%s is refused', async uri => {
    start({ 'folder/x': '' })
    project.link('../outside/secret.txt', 'link')
    const { code, data } = await (await talk(server, 'resources/read', { uri })).failure()
    expect([code, data]).toEqual([-32602, { uri }])
  })
})

const isAcknowledged = (frame: Frame): frame is Frame & { kind: 'notice' } =>
  frame.kind === 'notice' && frame.method === 'notifications/subscriptions/acknowledged'

const listen = async (notifications: Record<string, boolean | string[]>): Promise<Talk> => {
  const listening = await talk(server, 'subscriptions/listen', { notifications })
  await listening.frame(isAcknowledged)
  return listening
}
const isUpdate =
  (uri: string) =>
  (frame: Frame): frame is Frame & { kind: 'notice' } =>
    frame.kind === 'notice' && frame.params.get('uri')?.asString() === uri
const isListChange = (frame: Frame): frame is Frame & { kind: 'notice' } =>
  frame.kind === 'notice' && frame.method === 'notifications/resources/list_changed'

describe('change notifications', () => {
  test('are sent for a watched file that is written, replaced or removed, and for no other', async () => {
    start({ 'a.txt': '1', 'b.txt': '1' })
    const listening = await listen({ resourceSubscriptions: ['file:///a.txt'] })
    project.write('b.txt', '2')
    project.write('a.txt', '2')
    await listening.frame(isUpdate('file:///a.txt'))
    rmSync(join(project.root, 'a.txt'))
    await listening.frame(isUpdate('file:///a.txt'), 1)
    expect(noticesOf(listening).filter(({ params }) => JSON.stringify(params).includes('b.txt'))).toEqual([])
  })

  test('are sent for everything below a watched folder, also in folders created later', async () => {
    start({ 'src/deep/a.txt': '1' })
    const listening = await listen({ resourceSubscriptions: ['file:///src'] })
    project.write('src/deep/a.txt', '2')
    await listening.frame(isUpdate('file:///src/deep/a.txt'))
    mkdirSync(join(project.root, 'src/new'))
    await listening.frame(isUpdate('file:///src/new'))
    const written = setInterval(() => project.write('src/new/b.txt', String(Math.random())), 50)
    await listening.frame(isUpdate('file:///src/new/b.txt'))
    clearInterval(written)
  })

  test('go to the URI as the client wrote it', async () => {
    start({ 'a+b.txt': '1' })
    const listening = await listen({ resourceSubscriptions: ['file:///a+b.txt'] })
    project.write('a+b.txt', '2')
    await listening.frame(isUpdate('file:///a+b.txt'))
  })

  test('say that the list changed when a file came, and not when one was only written', async () => {
    start({ 'src/a.txt': '1' })
    const listening = await listen({ resourcesListChanged: true, resourceSubscriptions: ['file:///src/a.txt'] })
    project.write('src/a.txt', '2')
    await listening.frame(isUpdate('file:///src/a.txt'))
    expect(listening.frames.filter(isListChange)).toEqual([])
    project.write('src/b.txt', '1')
    await listening.frame(isListChange)
  })

  test.runIf(process.platform === 'linux')('nothing outside is watched', async () => {
    start()
    project.link('../outside', 'out')
    const listening = await listen({ resourceSubscriptions: ['file:///out', 'file:///%2e%2e/outside'] })
    expect(listening.frames.length).toBe(1)
    expect(watches()).toBe(0)
  })

  test.runIf(process.platform === 'linux')('files are watched only while a client is subscribed', async () => {
    start({ 'src/a.txt': '1', 'b/c/d.txt': '1' })
    expect(watches()).toBe(0)
    const [one, two] = [
      await listen({ resourcesListChanged: true }),
      await listen({ resourceSubscriptions: ['file:///src'] }),
    ]
    expect(watches()).toBe(4)
    one.abort.abort({ kind: 'gone' })
    await expect.poll(watches).toBe(1)
    two.abort.abort({ kind: 'gone' })
    await expect.poll(watches).toBe(0)
    const refused = await talk(server, 'subscriptions/listen', {
      notifications: { resourcesListChanged: true, toolsListChanged: 3 },
    })
    await refused.failure()
    await expect.poll(watches).toBe(0)
    await listen({ resourcesListChanged: true })
    await server.close()
    await expect.poll(watches).toBe(0)
  })
})

/** File system watches this process holds, as Linux counts them. */
const watches = (): number =>
  readdirSync('/proc/self/fdinfo')
    .map(name => readInfo(`/proc/self/fdinfo/${name}`))
    .reduce((sum, info) => sum + (info.match(/^inotify /gm)?.length ?? 0), 0)

const readInfo = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // closed meanwhile
  }
}
