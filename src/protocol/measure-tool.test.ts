import { expect, it } from 'vitest'
import { Json } from '../wire/json/json.ts'
import { estimateTokens, sizeOfTool } from './measure-tool.ts'
import { isLargeList, sumOfSizes, tokenText } from './tool-size.ts'

// The numbers were counted once with o200k_base.
it.each([
  [
    67,
    '{"name":"read_file","description":"Read the complete contents of a file as text. Only works within allowed directories.","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"number","description":"If provided, returns only the first N lines of the file"}},"required":["path"]}}',
  ],
  [
    28,
    '{"name":"suche","description":"Durchsucht alle Dokumente nach einem Begriff und gibt die Fundstellen zurück."}',
  ],
  [32, '{"name":"検索","description":"すべての文書を検索し、見つかった場所を見出しとともに返します。"}'],
  [15, '查询所有文档并返回结果与标题，支持分页和排序。'],
  [25, '{"enum":[100,200,300,1000,2500,31415,271828,1000000]}'],
])('estimates %d tokens within a quarter', (tokens, text) => {
  const estimate = estimateTokens(Buffer.from(text))
  expect(estimate / tokens).toBeGreaterThan(0.75)
  expect(estimate / tokens).toBeLessThan(1.25)
})

it('adds sizes up, and writes them for people', () => {
  const tool = Json.of({ name: 'a', description: 'Does something.' })
  const size = sizeOfTool(tool)
  expect(size.bytes).toBe(tool.toBytes().length)
  expect(sumOfSizes([size, size, { bytes: 1, tokens: 1 }])).toEqual({
    bytes: 2 * size.bytes + 1,
    tokens: 2 * size.tokens + 1,
  })
  expect([640, 1234, 9949, 12_345, 195_000].map(tokenText)).toEqual(['640', '1.2k', '9.9k', '12k', '195k'])
  expect(isLargeList({ listed: { bytes: 0, tokens: 20_000 } })).toBe(false)
  expect(isLargeList({ listed: { bytes: 0, tokens: 20_001 } })).toBe(true)
})
