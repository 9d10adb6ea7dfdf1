import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAndKill, faultsOf } from './memory-kills.ts'

// kill -9 during 1,000 adds, 20 times, each time another file.
const ROUNDS = Number(process.argv[2] ?? 20)
const folder = await mkdtemp(join(tmpdir(), 'dragoman-kill-'))
let faults = 0
try {
  for (let round = 0; round < ROUNDS; round++) {
    const path = join(folder, `${round}.db`)
    const last = await addAndKill(path, 0, 1_000, 1 + Math.floor(Math.random() * 999))
    const found = await faultsOf(path, last)
    faults += found.length
    console.log(
      `round ${round + 1}: killed after ${last + 1} acknowledged, ${found.length} faults ${found.slice(0, 3).join('; ')}`,
    )
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
console.log(`${ROUNDS} kills, ${faults} faults`)
process.exitCode = faults === 0 ? 0 : 1
