// One node of several, as a process of its own: adds to groups that others add to, and does whatever jobs it gets.

import { openPostgresStores } from '../../../src/servers/memory/open-stores.ts'
import { createRemember } from '../../../src/servers/memory/remember.ts'

const [url = '', schema = '', node = ''] = process.argv.slice(2)
const stores = openPostgresStores({ url, schema, maxConnections: 4 })
const remember = createRemember({ extracts: true, embeds: false })
const ADDS = 60

const add = (at: number): Promise<void> =>
  stores.with('shared', async store => {
    await remember(store, {
      group: `group-${at % 3}`,
      name: `episode ${node} ${at}`,
      body: `Zoe Alvarez: Number ${at} of ${node} is about Person ${at % 7} and the Kubernetes Cluster.`,
      source: 'message',
      sourceDescription: '',
      validAt: at,
      chain: 'talk',
    })
  })

const doJobs = async (): Promise<number[]> => {
  const done: number[] = []
  await stores.with('shared', async store => {
    for (let idle = 0; idle < 20; ) {
      const job = await store.lease(node, ['extract'], 60_000)
      if (!job) idle++
      else if (await store.finish({ job: job.id, owner: node })) done.push(job.id)
    }
  })
  return done
}

await Promise.all(
  Array.from({ length: 4 }, async (_, worker) => {
    for (let at = worker; at < ADDS; at += 4) await add(at)
  }),
)
const done = await doJobs()
await stores.close()
console.log(JSON.stringify(done))
