import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DOCTOR_SUBJECTS, examineSubject } from '../../support/doctor-subjects.ts'

const PAGE = readFileSync(new URL('../../../docs/doctor.md', import.meta.url), 'utf8')
const LOCAL = DOCTOR_SUBJECTS.filter(({ isDownloaded }) => !isDownloaded) // test/peers has the others

test.each(LOCAL)('docs/doctor.md shows what the doctor says: $title', async subject => {
  expect(PAGE).toContain(await examineSubject(subject))
})
