// `npm run fuzz -- --seconds 300 --seed 1`: damaged traffic at both faces of the gateway.
import { parseArgs } from 'node:util'
import { fuzz } from './fuzz.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } })
const seconds = Number(values.seconds ?? 300)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
console.log(`fuzzing for ${seconds} s with --seed ${seed}`)
const waves = Math.max(2, Math.round(seconds / 30))
const { conversations, faults } = await fuzz({ seed, seconds, waves, onWave: text => console.log(text) })
for (const fault of faults) console.log(`FAILED: ${fault}`)
console.log(
  faults.length > 0
    ? `failed: ${faults.length} faults; repeat with --seed ${seed}`
    : `passed: ${conversations} conversations without a crash, a hang, a 500 or a leak`,
)
process.exitCode = faults.length > 0 ? 1 : 0
