import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { type Outcome, readOutcome, readOutcomes, requiredScenarios, unrun, worstOf } from './outcomes.ts'
import { type Exception, type Report, tally } from './report.ts'
import { readRequired } from './suite.ts'

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
    expect(worstOf({ scenario: 'ping', complaints })).toBe('FAILURE')
  })

  it('are as bad as the worst of them', () => {
    expect(worstOf(outcome('SUCCESS'))).toBeUndefined()
    expect(worstOf(outcome('SUCCESS', 'WARNING'))).toBe('WARNING')
    expect(worstOf(outcome('WARNING', 'FAILURE'))).toBe('FAILURE')
  })

  it('fail where there are none', () => {
    expect(worstOf(readOutcome('ping', '[]'))).toBe('FAILURE')
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
    await mkdir(join(folder, 'tools_call-2026-11-15T06-36-52-890Z')) // of a client
    const outcomes = await readOutcomes(folder)
    expect([...outcomes.keys()].sort()).toEqual(['ping', 'server-sse-polling', 'tools_call'])
    expect(outcomes.get('server-sse-polling')?.complaints).toEqual([])
    expect(outcomes.get('ping')?.complaints).toHaveLength(1)
  })
})

describe('a requirements file', () => {
  it('names the scenarios of each side', () => {
    const text =
      '# about\nserver:\n  - ping\n  - tools-list\n\nclient:\n  - auth/basic\n\nnot_scored:\n  - scenario: polling\n'
    expect(requiredScenarios(text, 'server')).toEqual(['ping', 'tools-list'])
    expect(requiredScenarios(text, 'client')).toEqual(['auth/basic'])
  })
})

test.each([
  ['2025-11-25', 'server', 30, 0],
  ['2025-11-25', 'client', 18, 14],
  ['2026-07-28', 'server', 37, 0],
  ['2026-07-28', 'client', 32, 25],
] as const)(
  'the suite requires of %s, on the side of the %s, %i scenarios, of which %i are about OAuth',
  async (...row) => {
    const [revision, leg, count, aboutOAuth] = row
    const required = await readRequired(revision, leg)
    expect(new Set(required).size).toBe(count)
    expect(required.filter(scenario => scenario.startsWith('auth/'))).toHaveLength(aboutOAuth)
  },
)

describe('the tally', () => {
  const report = (required: Outcome[], exceptions: Exception[] = []): Report => ({
    name: 'demo',
    exceptions,
    required,
    others: [],
  })
  const exception = (status: Exception['status']): Exception => ({ scenario: 'ping', status, why: 'it cannot be' })

  it('counts what passed in all cells', () => {
    const good = report([outcome('SUCCESS'), outcome('SUCCESS')])
    expect(tally([good, good])).toEqual({ passed: 4, failed: 0 })
  })

  it('counts a warning as a failure', () => {
    expect(tally([report([outcome('SUCCESS'), outcome('WARNING')])])).toEqual({ passed: 1, failed: 1 })
  })

  it('lets an exception warn or fail as it must', () => {
    expect(tally([report([outcome('WARNING')], [exception('WARNING')])])).toEqual({ passed: 1, failed: 0 })
    expect(tally([report([unrun('ping', 'no')], [exception('FAILURE')])])).toEqual({ passed: 0, failed: 0 })
  })

  it('counts an exception that is worse, or no exception any more, as a failure', () => {
    expect(tally([report([unrun('ping', 'no')], [exception('WARNING')])])).toEqual({ passed: 0, failed: 1 })
    expect(tally([report([outcome('SUCCESS')], [exception('FAILURE')])])).toEqual({ passed: 0, failed: 1 })
  })
})
