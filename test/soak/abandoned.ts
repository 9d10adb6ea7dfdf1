// 5,000 clients of each kind that leave without a word, and 1,000 large sets of capabilities: the memory comes back.
import { soakAbandonment } from './abandonment.ts'

const faults = await soakAbandonment({ warmUp: 100, times: 5_000, capabilitySets: 1_000, report: console.log })
for (const fault of faults) console.log(`FAILED: ${fault}`)
if (faults.length === 0) console.log('passed: abandoned clients left nothing behind')
process.exitCode = faults.length === 0 ? 0 : 1
