import fc from 'fast-check'
import { expect, test } from 'vitest'
import { stemOf, wordsOf } from '../../../text/words.ts'
import { indexRow, occurrences, stemsIn } from './postgres-index-row.ts'

const WORDS = ['cello', 'cellos', 'Cremona', "it's", '東京', 'naïve', 'a1', '\\', "'", 'x'.repeat(300)]

const texts = fc.tuple(
  ...Array.from({ length: 5 }, () =>
    fc.array(fc.constantFrom(...WORDS), { maxLength: 12 }).map(words => words.join(' ')),
  ),
)

test('an index row keeps how often each stem stands in each column', () => {
  fc.assert(
    fc.property(texts, columns => {
      const { tsv, len } = indexRow('doc', columns, ['=mine'])
      const read = columns.map(text => wordsOf(text).map(word => stemOf(word).slice(0, 200)))
      expect(len).toBe(read.flat().length)
      expect(new Set(stemsIn(tsv))).toEqual(new Set(read.flat()))
      for (const stem of new Set(read.flat()))
        expect(occurrences('doc', tsv, stem, false)).toEqual(
          read.map(stems => stems.filter(other => other === stem).length),
        )
    }),
  )
})

test('a beginning counts everything that begins so', () => {
  const { tsv } = indexRow('doc', ['東京 東寺 京都', '', '東京', '', ''], [])
  expect(occurrences('doc', tsv, '東', true)).toEqual([2, 0, 1, 0, 0])
  expect(occurrences('doc', tsv, '東', false)).toEqual([0, 0, 0, 0, 0])
})
