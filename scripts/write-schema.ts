// Writes schema/dragoman.schema.json; run it after a change to src/config/schema.ts: npx tsx scripts/write-schema.ts
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { jsonSchema } from '../src/config/schema.ts'

const file = fileURLToPath(new URL('../schema/dragoman.schema.json', import.meta.url))
writeFileSync(file, JSON.stringify(jsonSchema()))
execFileSync('npx', ['biome', 'format', '--write', file], { stdio: 'inherit' })
