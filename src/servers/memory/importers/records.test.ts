import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DocumentError, itemsIn } from './records.ts'

const cut = async function* (text: string, sizes: readonly number[]): AsyncGenerator<string> {
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    yield text.slice(at, at + size)
    at += size
  }
}

const itemsOf = async (text: string, sizes: readonly number[] = [7]) => {
  const items: { line: number; value: unknown }[] = []
  for await (const item of itemsIn(cut(text, sizes))) items.push({ line: item.line, value: JSON.parse(item.text) })
  return items
}

it('finds the objects of an array however the document is cut and spaced', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.dictionary(fc.string(), fc.jsonValue())),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      fc.constantFrom(undefined, 2),
      fc.boolean(),
      async (objects, sizes, spaces, isWrapped) => {
        const document = isWrapped ? { message: '[{"no": 1}]', deep: { episodes: objects } } : objects
        const found = await itemsOf(JSON.stringify(document, undefined, spaces), sizes)
        expect(found.map(({ value }) => value)).toEqual(JSON.parse(JSON.stringify(objects)))
      },
    ),
  )
})

it('says on which line an object begins', async () => {
  expect((await itemsOf('[\n{"a":\n1},\n\n{"b":2}]')).map(({ line }) => line)).toEqual([2, 5])
})

it.each(['[{"a":1}', '[{"a":', '{"a":[{"b":"', '[1}', ']'])('%j is no document', async text => {
  await expect(itemsOf(text)).rejects.toThrow(DocumentError)
})
