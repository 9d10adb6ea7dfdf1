import fc from 'fast-check'
import { expect, test } from 'vitest'
import { entitiesIn } from './entities.ts'

const names = (text: string) => entitiesIn(text).map(entity => entity.text)

test.each([
  ['Yesterday Margit moved to New York with Dr. Chen.', ['Margit', 'New York', 'Dr. Chen']],
  ['I read "Silent Spring" last week.', ['Silent Spring']],
  ['Thanks! Wow, that is Great Lakes country.', ['Great Lakes']],
  ['Bob and Alice met in March.', ['Bob', 'Alice']],
  ['Painting helps me.', []],
  ['I know Zoë. Zoë paints.', ['Zoë']],
  ['The University of Texas won on Monday', ['University of Texas']],
  ['ask @ann_b about readFileSync and src/gateway.ts', ['@ann_b', 'readFileSync', 'src/gateway.ts']],
  ['see https://example.com/a?b=c.', ['https://example.com/a?b=c']],
  ['set `max_retries` in config.yaml', ['max_retries', 'config.yaml']],
  ['Anna’s dog is ill', ['Anna']],
  ['We use PostgreSQL 16 here', ['PostgreSQL 16']],
  ['nothing here', []],
])('%j names %j', (text, expected) => {
  expect(names(text)).toEqual(expected)
})

test('a single first word is a name if the caller knows it', () => {
  expect(entitiesIn('Dorothea paints.')).toEqual([])
  expect(entitiesIn('Dorothea paints.', norm => norm === 'dorothea').map(({ text }) => text)).toEqual(['Dorothea'])
})

test('every span is at its offset', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('Ann', 'b', ' ', '.', '"', '`', '@', '_', '/', "'s", 'É'), maxLength: 40 }),
      text => {
        for (const { text: span, kind, start } of entitiesIn(text)) {
          if (kind !== 'code' && kind !== 'quoted') expect(text.slice(start, start + span.length)).toBe(span)
          else expect(text.slice(start)).toContain(span)
        }
      },
    ),
  )
})

test('a quotation that contains code is not found with a gap', () => {
  expect(entitiesIn('"Ann\'sAnn"').map(({ text }) => text)).not.toContain("Ann'    ")
})

// What backtracks would not end before the test is given up.
test.each(['a', 'A', '_', 'aB', 'A ', '/a', '.', '"', '`', '@a', "A'", 'a.'])(
  'a hundred thousand of %j end soon',
  piece => {
    expect(entitiesIn(piece.repeat(100_000)).length).toBeLessThanOrEqual(200)
  },
)

test.each([
  ['Priya leads the Falcon project.', ['Priya', 'Falcon']],
  ['Nadia moved to Lisbon in March.', ['Nadia', 'Lisbon']],
  ['Ola also prefers tea.', ['Ola']],
  ['Someone said so. They moved. It left.', []],
  ['Dinner was great. Tests passed.', []],
])('a first word before a verb of people is a name: %s', (text, names) => {
  expect(entitiesIn(text).map(span => span.text)).toEqual(names)
})

test('an overlong span is not a name', () => {
  expect(entitiesIn(`See https://x.test/${'a'.repeat(5_000)} and ${'aB'.repeat(3_000)} here.`)).toEqual([])
})
