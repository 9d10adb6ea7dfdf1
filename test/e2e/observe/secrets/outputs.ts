import { readdir, readFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { World } from './world.ts'

/** Keeps the events of the console from now on. */
export const watchEvents = async ({ origin, owner }: World) => {
  let text = ''
  const sending = get(`${origin}/admin/events`, { headers: { ...owner, accept: 'text/event-stream' } })
  await new Promise<void>((resolve, reject) => {
    sending.on('error', reject)
    sending.on('response', response => {
      response
        .on('error', () => {})
        .on('data', chunk => {
          text += String(chunk)
        })
      resolve()
    })
  })
  return (): string => {
    sending.destroy()
    return text
  }
}

/** Endpoints that never end, that are read below, or that need the id of what no flow makes. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['/admin/events', '/admin/recordings/{id}', '/admin/tasks/{id}'],
  ...['/admin/memory/episodes/{id}', '/admin/memory/entities/{id}'],
])
const NAME = /\{(?:server|name)\}/

/** A page of the list of recordings; the gateway ends a search that takes long, so a page may be short. */
interface RecordingsPage {
  readonly recordings: readonly { readonly id: string }[]
  readonly next?: string
}
const RECORDINGS = '/admin/recordings'
const MOST_PAGES = 100

/** What the owner is shown of every endpoint for reading, and of every recording. */
const readAdmin = async ({ origin, owner }: World): Promise<Readonly<Record<string, string>>> => {
  const read = async (path: string): Promise<string> => (await fetch(origin + path, { headers: owner })).text()
  const { paths } = JSON.parse(await read('/admin/openapi.json')) as { paths: Record<string, { get?: object }> }
  const { servers } = JSON.parse(await read('/admin/logins/servers')) as { servers: { readonly name: string }[] }
  const texts: Record<string, string> = {}
  for (const [path, { get: reading }] of Object.entries(paths)) {
    if (!reading || LEFT_OUT.has(path)) continue
    const of = NAME.test(path) ? servers.map(({ name }) => path.replace(NAME, name)) : [path]
    expect(of.join(), 'what is read of it').not.toContain('{')
    texts[path] = (await Promise.all(of.map(each => read(`${each}?limit=500`)))).join('\n')
  }
  const ids: string[] = []
  for (let before = '', left = MOST_PAGES; left > 0; left--) {
    const page = JSON.parse(await read(`${RECORDINGS}?limit=500${before}`)) as RecordingsPage
    ids.push(...page.recordings.map(({ id }) => id))
    if (page.next === undefined) break
    before = `&before=${page.next}`
  }
  texts[`${RECORDINGS}/{id}`] = (await Promise.all(ids.map(id => read(`${RECORDINGS}/${id}`)))).join('\n')
  return texts
}

const readAudit = async (data: string): Promise<string> => {
  const files = (await readdir(data)).filter(name => name.startsWith('audit'))
  return (await Promise.all(files.map(name => readFile(join(data, name), 'utf8')))).join('\n')
}

/** Everything that the gateway shows or writes for the people who run it; ends it. */
export const readOutputs = async (world: World, events: () => string): Promise<Readonly<Record<string, string>>> => {
  const { origin, owner, data, peers, stop } = world
  const metrics = await (await fetch(`${origin}/metrics`, { headers: owner })).text()
  const ready = await (await fetch(`${origin}/readyz`, { headers: owner })).text()
  const admin = await readAdmin(world)
  const shown = { ...admin, '/admin/events': events(), '/metrics': metrics, '/readyz': ready }
  const log = await stop()
  return { ...shown, log, 'the audit log': await readAudit(data), telemetry: peers.collector.texts.join('\n') }
}
