import { openSqliteStore } from '../../src/servers/memory/open-stores.ts'
import { passagesOf } from '../../src/servers/memory/text/passages.ts'

// Adds episodes to a memory and says after each that it is stored; it is there to be killed.
const [path = '', from = '0', count = '1000'] = process.argv.slice(2)
const store = await openSqliteStore({ path })
for (let at = Number(from); at < Number(from) + Number(count); at++) {
  const content = `Ann: Episode ${at} tells of Town ${at % 50} and of Bob.`
  const episode = {
    group: 'main',
    name: `episode ${at}`,
    content,
    source: 'message',
    sourceDescription: '',
    validAt: at,
    chain: 'chat',
  } as const
  const docs = passagesOf(episode).map(({ kind, text, actor }) => ({ kind, text, actor, dt: '' }))
  const fact = { source: { name: 'Ann' }, target: { name: `Town ${at % 50}` }, name: 'TELLS_OF', fact: content }
  await store.add(episode, {
    docs,
    entities: [{ name: 'Ann' }, { name: `Town ${at % 50}` }],
    facts: [{ ...fact, origin: 'rule', confidence: 1, doc: 0 }],
    jobs: [{ kind: 'extract' }],
  })
  process.stdout.write(`${at}\n`)
}
await store.close()
process.stdout.write('done\n')
