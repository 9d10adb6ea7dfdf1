import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isPassed, type Outcome, readOutcome, readOutcomes, requiredScenarios, unrun, warningsOf } from './outcomes.ts'
import { type Report, tally } from './report.ts'

const check = (status: string, errorMessage?: string) => ({
  id: 'a-check',
  status,
  description: 'It does',
  errorMessage,
})
const outcome = (...statuses: string[]): Outcome => readOutcome('ping', JSON.stringify(statuses.map(s => check(s))))

describe('a scenario’s checks', () => {
  it('pass where all succeeded, were informative or were skipped', () => {
    expect(outcome('SUCCESS', 'INFO', 'SKIPPED')).toEqual({ scenario: 'ping', complaints: [] })
  })

  it('fail by one failure, with its message or else what should have been', () => {
    const text = JSON.stringify([check('SUCCESS'), check('FAILURE', 'It does not'), check('FAILURE')])
    const { complaints } = readOutcome('ping', text)
    expect(complaints.map(({ message }) => message)).toEqual(['It does not', 'It does'])
    expect(isPassed({ scenario: 'ping', complaints })).toBe(false)
  })

  it('pass with warnings, which are kept', () => {
    expect(isPassed(outcome('SUCCESS', 'WARNING'))).toBe(true)
    expect(warningsOf(outcome('SUCCESS', 'WARNING'))).toHaveLength(1)
  })

  it('fail where there are none', () => {
    expect(isPassed(readOutcome('ping', '[]'))).toBe(false)
  })
})

describe('the folder of a run', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'outcomes-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('yields every scenario by its name, and a failure where the suite stopped before its checks', async () => {
    const finished = join(folder, 'server-server-sse-polling-2026-11-15T06-36-53-801Z')
    await mkdir(finished)
    await writeFile(join(finished, 'checks.json'), JSON.stringify([check('SUCCESS')]))
    await mkdir(join(folder, 'server-ping-2026-11-15T06-36-52-890Z'))
    const outcomes = await readOutcomes(folder)
    expect([...outcomes.keys()].sort()).toEqual(['ping', 'server-sse-polling'])
    expect(outcomes.get('server-sse-polling')?.complaints).toEqual([])
    expect(outcomes.get('ping')?.complaints).toHaveLength(1)
  })
})

describe('a requirements file', () => {
  it('names the scenarios of the server alone', () => {
    const text =
      '# about\nserver:\n  - ping\n  - tools-list\n\nclient:\n  - auth/basic\n\nnot_scored:\n  - scenario: polling\n'
    expect(requiredScenarios(text)).toEqual(['ping', 'tools-list'])
  })
})

describe('the tally', () => {
  const report = (required: Outcome[], expected: Report['expected']): Report => ({
    name: 'demo',
    expected,
    required,
    others: [],
  })

  it('is as expected where every cell reached its numbers', () => {
    const good = report([outcome('SUCCESS'), outcome('SUCCESS')], { passed: 2, warnings: 0 })
    expect(tally([good])).toEqual({ passed: 2, failed: 0, isAsExpected: true })
  })

  it('counts a warning as a failure where none is expected', () => {
    const warned = report([outcome('SUCCESS'), outcome('WARNING')], { passed: 2, warnings: 0 })
    expect(tally([warned])).toEqual({ passed: 1, failed: 1, isAsExpected: false })
  })

  it('leaves out cells that are not scored, and is never good with nothing scored', () => {
    expect(tally([report([unrun('ping', 'no')], 'not scored')])).toEqual({ passed: 0, failed: 0, isAsExpected: false })
  })
})
