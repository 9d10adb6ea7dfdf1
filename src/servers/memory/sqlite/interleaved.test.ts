import { expect, test } from 'vitest'
import { interleave } from '../../../../test/support/memory/interleave.ts'
import { temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import { normaliseName } from '../text/names.ts'

test('adds of many groups at once make no name twice and leak nothing', async () => {
  const store = await temporaryStore()
  const groups = 20
  await interleave(store, { adds: 1_000, groups })
  const entities = await store.entities('all', 100_000)
  const keys = entities.map(entity => `${entity.group}/${normaliseName(entity.name)}`)
  expect(keys.length - new Set(keys).size).toBe(0)
  expect(new Set(entities.map(entity => entity.group)).size).toBe(groups)
  const group = new Map(entities.map(entity => [entity.uuid, entity.group]))
  const facts = await store.facts('all', 100_000)
  expect(facts.filter(fact => group.get(fact.source) !== fact.group || group.get(fact.target) !== fact.group)).toEqual(
    [],
  )
  for (const fact of facts) expect(fact.fact).toContain(`in ${fact.group} `)
}, 60_000)
