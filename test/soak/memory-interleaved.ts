import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/servers/memory/open-stores.ts'
import { normaliseName } from '../../src/servers/memory/text/names.ts'
import { interleave } from '../support/memory/interleave.ts'

// 10,000 interleaved adds over 50 groups: no name twice in a group, nothing of one group in another.
const folder = await mkdtemp(join(tmpdir(), 'dragoman-interleaved-'))
const store = await openSqliteStore({ path: join(folder, 'memory.db') })
try {
  await interleave(store, { adds: 10_000, groups: 50 })
  const entities = await store.entities('all', 1_000_000)
  const keys = entities.map(entity => `${entity.group}/${normaliseName(entity.name)}`)
  const facts = await store.facts('all', 1_000_000)
  const leaks = facts.filter(fact => !fact.fact.includes(`in ${fact.group} `)).length
  const doubles = keys.length - new Set(keys).size
  console.log(`${entities.length} entities, ${facts.length} facts: ${doubles} names twice, ${leaks} leaks`)
  process.exitCode = doubles + leaks === 0 ? 0 : 1
} finally {
  await store.close()
  await rm(folder, { recursive: true, force: true })
}
