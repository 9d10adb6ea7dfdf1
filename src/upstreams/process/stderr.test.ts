import fc from 'fast-check'
import { expect, it } from 'vitest'
import { lastLines, StderrBuffer } from './stderr.ts'

it('keeps the last bytes, however they are split', () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z]{0,40}$/), { maxLength: 30 }), chunks => {
      const ring = new StderrBuffer(16)
      for (const chunk of chunks) ring.push(Buffer.from(chunk))
      expect(ring.text()).toBe(chunks.join('').slice(-16))
    }),
  )
})

it('shows the last lines on one, without colours and secrets', () => {
  const text = '1\n2\n3\n4\n\n\u001b[31mERROR\u001b[0m bad key tok-12345678\r\n  at x\n6\n'
  expect(lastLines(text, ['tok-12345678'])).toBe('3 | 4 | ERROR bad key *** | at x | 6')
})

it('shows no more than a few hundred characters', () => {
  expect(lastLines('x'.repeat(10_000), [])).toHaveLength(600)
})

it('shows no rest of a secret that begins with another, or that was cut', () => {
  expect(lastLines('key abcdefgh-rest\n', ['abcdefgh', 'abcdefgh-rest'])).toBe('key ***')
  const secret = 'secret-'.repeat(4)
  const colours = '\u001b[0m'.repeat(1100)
  for (let cut = 0; cut < secret.length; cut++)
    expect(lastLines(secret + colours + ' '.repeat(cut), [secret])).toBe('***')
})
