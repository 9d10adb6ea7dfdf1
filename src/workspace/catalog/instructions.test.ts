import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mergeInstructions } from './instructions.ts'

test('each server has a section in the order of the workspace, and the rule for names is said once', () => {
  const merged = mergeInstructions(
    [
      { namespace: 'b', text: 'Use me first.\n' },
      { namespace: 'quiet', text: '  ' },
      { namespace: 'a', text: 'Use me then.' },
    ],
    'prefix',
  )
  expect(merged).toMatch(/<server>__<name>/)
  expect(merged?.slice(merged.indexOf('##'))).toBe('## b\n\nUse me first.\n\n## a\n\nUse me then.')
})

test('the rule follows the style; plain names need none', () => {
  const manuals = [{ namespace: 'a', text: 'Hello.' }]
  expect(mergeInstructions(manuals, 'slash')).toContain('<server>/<name>')
  expect(mergeInstructions(manuals, 'plain')).toBe('## a\n\nHello.')
})

test('where nobody has instructions there are none', () => {
  expect(mergeInstructions([{ namespace: 'a', text: '' }], 'prefix')).toBeUndefined()
  expect(mergeInstructions([], 'prefix')).toBeUndefined()
})

test('one server has 4 KiB and all of them 16, cut between characters', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 6000 }), { maxLength: 8 }), texts => {
      const manuals = texts.map((text, i) => ({ namespace: `s${i}`, text }))
      const merged = mergeInstructions(manuals, 'prefix') ?? ''
      expect(Buffer.byteLength(merged)).toBeLessThanOrEqual(16 * 1024)
      if (!texts.join().includes('\ufffd')) expect(merged).not.toContain('\ufffd')
    }),
    { numRuns: 50 },
  )
  const long = mergeInstructions([{ namespace: 'a', text: 'ä'.repeat(5000) }], 'plain') ?? ''
  expect(Buffer.byteLength(long)).toBeLessThanOrEqual(4096 + '## a\n\n'.length)
  expect(long.endsWith('ä…')).toBe(true)
})
