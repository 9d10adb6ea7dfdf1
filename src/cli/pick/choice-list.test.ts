import { describe, expect, test } from 'vitest'
import { type ChoiceList, drawChoices, type PressedKey, shownChoices, stepChoices } from './choice-list.ts'

const LABELS = ['git/add', 'git/commit', 'mail/send', 'mail/read']
const first: ChoiceList = {
  choices: LABELS.map(label => ({ label, note: '1 token', weight: 1 })),
  chosen: new Set([0]),
  cursor: 0,
  filter: '',
  isFiltering: false,
}
const SPECIAL: Readonly<Record<string, PressedKey>> = {
  ' ': { name: 'space', text: ' ' },
  '\r': { name: 'return', text: '\r' },
  '↓': { name: 'down' },
  '↑': { name: 'up' },
  '←': { name: 'backspace' },
  '⎋': { name: 'escape' },
}
const press = (keys: string, list: ChoiceList = first) => {
  let state = list
  for (const key of keys) {
    const next = stepChoices(state, SPECIAL[key] ?? { name: key, text: key })
    if (next === 'done' || next === 'cancelled') return next
    state = next
  }
  return state
}
const chosen = (state: ReturnType<typeof press>): string[] =>
  typeof state === 'string' ? [state] : [...state.chosen].sort().map(at => LABELS[at] ?? '')

describe('a list of choices', () => {
  test.each([
    ['↓ ', ['git/add', 'git/commit']],
    [' ', []],
    ['a', LABELS],
    ['an', []],
    ['↑↑↓↓↓↓↓↓ ', ['git/add', 'mail/read']],
    ['/mail\ra', ['git/add', 'mail/send', 'mail/read']],
    ['/mail\r↓ ', ['git/add', 'mail/read']],
    ['/q\r', ['git/add']],
    ['/mailx←\rn', ['git/add']],
    ['/nothing\r ', ['git/add']],
    ['\r', ['done']],
    ['q', ['cancelled']],
    ['/x⎋⎋', ['cancelled']],
  ])('after the keys %j has chosen %j', (keys, labels) => expect(chosen(press(keys))).toEqual(labels))

  test('clears the filter with Escape, and filters by every word', () => {
    expect(shownChoices({ ...first, filter: 'ma re' })).toEqual([3])
    expect(press('/x⎋')).toEqual({ ...first, filter: '' })
  })

  test('draws what fits, around the cursor', () => {
    const choices = Array.from({ length: 50 }, (_, i) => ({ label: `tool ${i}`, note: '', weight: 1 }))
    const lines = drawChoices({ ...first, choices, cursor: 30 }, () => 'title', { columns: 20, rows: 10 })
    expect(lines.length).toBe(8)
    expect(lines).toContain('> [ ] tool 30  ')
    expect(lines.every(({ length }) => length <= 20)).toBe(true)
  })
})
