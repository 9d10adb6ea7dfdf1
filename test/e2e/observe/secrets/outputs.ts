import { readdir, readFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
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

/** Endpoints that never end, or that need a name. */
const LEFT_OUT = /\/admin\/events|\{/
const ITEMS: Readonly<Record<string, (list: { recordings: { id: string }[] }) => string[]>> = {
  '/admin/recordings': ({ recordings }) => recordings.map(({ id }) => `/admin/recordings/${id}`),
}

/** What the owner is shown of every endpoint for reading, and of every recording. */
const readAdmin = async ({ origin, owner }: World): Promise<Readonly<Record<string, string>>> => {
  const read = async (path: string): Promise<string> => (await fetch(origin + path, { headers: owner })).text()
  const { paths } = JSON.parse(await read('/admin/openapi.json')) as { paths: Record<string, { get?: object }> }
  const texts: Record<string, string> = {}
  for (const [path, { get: reading }] of Object.entries(paths)) {
    if (!reading || LEFT_OUT.test(path)) continue
    texts[path] = await read(`${path}?limit=500`)
    const items = ITEMS[path]?.(JSON.parse(texts[path])) ?? []
    if (items.length > 0) texts[`${path}/{id}`] = (await Promise.all(items.map(read))).join('\n')
  }
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
