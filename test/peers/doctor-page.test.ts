import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DOCTOR_SUBJECTS, examineSubject } from '../support/doctor-subjects.ts'
import { runCommand } from './process.ts'

const PAGE = readFileSync(new URL('../../docs/doctor.md', import.meta.url), 'utf8')
const DOWNLOADED = DOCTOR_SUBJECTS.filter(({ isDownloaded }) => isDownloaded)
const SLOW = { timeout: 120_000 } // the first run downloads

test.for(DOWNLOADED)('docs/doctor.md shows what the doctor says: $title', SLOW, async (subject, { skip }) => {
  const registry = await runCommand({ command: 'npm', args: ['view', 'supergateway', 'version'] }, 30_000)
  if (registry.code !== 0) skip('the registry of npm cannot be reached')
  expect(PAGE).toContain(await examineSubject(subject))
})
