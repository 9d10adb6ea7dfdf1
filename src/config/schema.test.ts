import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { jsonSchema } from './schema.ts'

it('the published JSON Schema is up to date (npx tsx scripts/write-schema.ts)', () => {
  const published: unknown = JSON.parse(readFileSync('schema/dragoman.schema.json', 'utf8'))
  expect(published).toEqual(JSON.parse(JSON.stringify(jsonSchema())))
})
