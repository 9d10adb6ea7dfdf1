import { expect, test } from 'vitest'
import { planFaults } from './faults.ts'
import { Ledger, resultOf } from './ledger.ts'
import { pageWith, resultsIn } from './report.ts'

const WORK = { tool: 'work', ms: 0, events: 0 } as const

test('a ledger counts calls by how they ended', () => {
  const ledger = new Ledger()
  const right = ledger.begin('a', WORK)
  ledger.taskStarted(right)
  ledger.executed(right.number)
  ledger.end(right, { kind: 'result', text: resultOf(right), isReplayed: true })
  ledger.end(ledger.begin('a', WORK), { kind: 'error', reason: 'replica_lost' })
  ledger.end(ledger.begin('b', WORK), { kind: 'cut' })
  ledger.end(ledger.begin('b', WORK), { kind: 'refused' })
  expect(ledger.counts()).toEqual({
    calls: 4,
    results: 1,
    replayed: 1,
    refused: 1,
    cut: 1,
    errors: { replica_lost: 1 },
    tasks: 1,
    sessionsLost: 0,
    tasksLost: 0,
    doubled: 0,
    wrong: 0,
    silent: 0,
  })
  expect(ledger.faults()).toEqual([])
})

test('a ledger finds what must never happen', () => {
  const ledger = new Ledger()
  const twice = ledger.begin('a', WORK)
  ledger.executed(twice.number)
  ledger.executed(twice.number)
  ledger.end(twice, { kind: 'cut' })
  const foreign = ledger.begin('b', WORK)
  ledger.executed(foreign.number)
  ledger.end(foreign, { kind: 'result', text: resultOf(twice) })
  const invented = ledger.begin('c', WORK)
  ledger.end(invented, { kind: 'result', text: resultOf(invented) })
  ledger.begin('d', WORK)
  ledger.repeated('e', 'the response to call 9')
  ledger.sessionLost('f', 'session')
  ledger.sessionLost('f', 'session')
  ledger.taskLost('g', twice)
  expect(ledger.faults()).toEqual([
    'session lost: f',
    'task lost: 1 of g',
    'doubled: work 1 of a was executed 2 times',
    'doubled: e: the response to call 9',
    'wrong: work 2 of b got "work 1 done"',
    'wrong: work 3 of c got a result and was never executed',
    'silent: work 4 of d: never ended',
  ])
})

test('the same seed plans the same faults', () => {
  expect(planFaults('kill', 50, 3, 7)).toEqual(planFaults('kill', 50, 3, 7))
  expect(planFaults('kill', 50, 3, 7)).not.toEqual(planFaults('kill', 50, 3, 8))
  expect(new Set(planFaults('term', 6, 3, 7).map(({ victim }) => victim))).toEqual(new Set([0, 1, 2]))
})

test('a page keeps the counts of scenarios that did not run again', () => {
  const result = { ...new Ledger().counts(), clients: 1, seed: 1, seconds: 60, orphans: 0, leaked: 0, leakedAtKill: 0 }
  const one = { ...result, name: 'one', faults: 50, findings: [] }
  const rolling = { ...result, name: 'rolling', faults: 49, findings: [] }
  const empty = 'before\n<!-- counts: written by `npm run chaos`, do not edit -->\n\n<!-- end of counts -->\nafter\n'
  const page = pageWith(pageWith(empty, [rolling], '2026-01-01'), [one], '2026-01-02')
  expect(page.startsWith('before\n')).toBe(true)
  expect(page.endsWith('-->\nafter\n')).toBe(true)
  expect(page).toContain('| faults | 50 | 49 |')
  expect(resultsIn(page)).toEqual([one, rolling])
})
