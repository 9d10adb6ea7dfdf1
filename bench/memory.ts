// `npm run bench:memory -- <locomo file> [--episodes N] [--postgres URL]`: how well and how fast the memory finds what it was told.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readLocomo } from './locomo.ts'
import { measureDates } from './memory-dates.ts'
import { onPostgres } from './memory-postgres.ts'
import { loadMemory } from './memory-program.ts'
import { measureRecall } from './memory-recall.ts'
import { type MemoryResults, memorySection } from './memory-report.ts'
import { measureSpeed } from './memory-speed.ts'
import { publish } from './page.ts'
import { facts, save } from './results.ts'

const EPISODES = 100_000

const { values, positionals } = parseArgs({
  options: { episodes: { type: 'string' }, postgres: { type: 'string' } },
  allowPositionals: true,
})
const [file] = positionals
if (file === undefined) {
  console.error('Give the file with the conversations: npm run bench:memory -- locomo10.json')
  process.exit(1)
}
const episodes = Number(values.episodes ?? EPISODES)
const known = facts()
const memory = await loadMemory()
// npm runs this in bench/; the path is meant from where it was typed.
const path = resolve(process.env.INIT_CWD ?? process.cwd(), file)
const conversations = readLocomo(path)
const results: MemoryResults = {
  ...known,
  conversations: conversations.length,
  recall: {
    session: await measureRecall(memory, conversations, 'session'),
    turn: await measureRecall(memory, conversations, 'turn'),
    withoutCaptions: await measureRecall(memory, readLocomo(path, false), 'session'),
  },
  ...(values.postgres !== undefined && {
    postgres: await onPostgres(memory, values.postgres, over => measureRecall(over, conversations, 'session')),
  }),
  dates: measureDates(conversations, memory),
  speed: await measureSpeed(memory, episodes),
}
const section = memorySection(results)
save('memory', results)
if (episodes >= EPISODES) publish({ Memory: section })
console.log(section)
