import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { DOCTOR_SUBJECTS, examineSubject } from '../test/support/doctor-subjects.ts'

// Examines real servers and writes what `dragoman doctor` prints into docs/doctor.md: npx tsx scripts/write-doctor-page.ts
// Downloads mcp-proxy and supergateway with npx.

const PAGE = fileURLToPath(new URL('../docs/doctor.md', import.meta.url))
const BEGIN = '<!-- written by scripts/write-doctor-page.ts -->'

const parts: string[] = []
for (const subject of DOCTOR_SUBJECTS) {
  process.stdout.write(`${subject.title}\n`)
  parts.push(await examineSubject(subject))
}
const [head = ''] = readFileSync(PAGE, 'utf8').split(BEGIN)
writeFileSync(PAGE, `${head}${BEGIN}\n\n${parts.join('\n')}`)
