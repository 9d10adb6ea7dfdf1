import { DatabaseSync } from '@photostructure/sqlite'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { ftsQuery, indexText, queryTerms } from './query.ts'

const words = (query: string) => queryTerms(query).map(({ word }) => word)

const database = new DatabaseSync(':memory:')
database.exec("CREATE VIRTUAL TABLE t USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2')")
afterAll(() => database.close())

const finds = (text: string, query: string): boolean => {
  database.exec('DELETE FROM t')
  database.prepare('INSERT INTO t VALUES (?)').run(indexText(text))
  const match = ftsQuery(queryTerms(query))
  return match !== '' && database.prepare('SELECT 1 FROM t WHERE t MATCH ?').all(match).length > 0
}

test.each([
  ['When did Ann paint the sunrise?', ['ann', 'paint', 'sunrise']],
  ['painted painting paints', ['paints']],
  ['what is it', ['what', 'is', 'it']],
  ['Zoë’s café', ['zoe', 'cafe']],
  ['readFileSync', ['readfilesync', 'read', 'file', 'sync']],
  ['snake_case-name', ['snake', 'case', 'name']],
  ['東京タワー', ['東京', '京タ', 'タワ', 'ワー']],
  ['茶', ['茶']],
  ['GPT模型', ['gpt', '模型']],
  ['???', []],
  ['', []],
])('%j looks for %j', (query, expected) => {
  expect(words(query)).toEqual(expected)
})

test.each([
  ['I love hiking in the mountains', 'hike mountain'],
  ['我住在北京的东边', '北京'],
  ['我喜欢喝茶', '茶'],
  ['茶很好', '茶'],
  ['昨日東京タワーに行きました', '東京タワー'],
  ['ภาษาไทยไม่มีช่องว่าง', 'ไทย'],
  ['서울에서 만났습니다', '서울'],
  ['हिन्दी में लिखा', 'हिन्दी'],
  ['Мы переехали в Москву', 'москву'],
  ['Die Straße ist gesperrt', 'straße'],
  ['El niño está en São Paulo', 'nino sao'],
  ['Wir trafen Jürgen', 'jurgen'],
  ['call getUserName() first', 'user'],
  ['the HTTPServer crashed', 'server'],
  ['set MAX_RETRY_COUNT', 'retry'],
])('%j is found by %j', (text, query) => {
  expect(finds(text, query)).toBe(true)
})

test.each(['"', '"unbalanced', 'a* OR b', 'NEAR(a b)', '-minus', 'col:val', '(', 'AND', '^x', "'; DROP TABLE t; --"])(
  '%j is words, not syntax',
  query => {
    expect(() => finds('plain', query)).not.toThrow()
  },
)

test('of a thousand words the longest are the terms', () => {
  const query = Array.from({ length: 1_000 }, (_, index) => `word${index}`).join(' ')
  const terms = words(`${query} extraordinarily`)
  expect(terms.length).toBeLessThanOrEqual(32)
  expect(terms).toContain('extraordinarily')
})

test('no query is a syntax error for the index', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), query => {
      finds('plain', query)
    }),
  )
})

test('plain text is indexed unchanged', () => {
  expect(indexText('Nothing special here, v1.2.')).toBe('Nothing special here, v1.2.')
})
