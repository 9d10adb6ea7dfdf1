import { expect, test } from 'vitest'
import { startMemory } from '../../../../test/support/memory/memory.ts'

const NOTES: Readonly<Record<string, readonly string[]>> = {
  'Die Donaudampfschifffahrtsgesellschaft zahlt im Mai.': ['Donaudampfschifffahrtsgesellschaft'],
  'Das Gerät für Müller steht im Büro.': ['mueller gerät', 'Müller', 'muller', 'BURO'],
  'Le café est fermé à Orléans.': ['cafe orleans', 'café'],
  '東京タワーは港区にあります。': ['東京', 'タワー', '港'],
  '我们在北京的办公室很大。': ['北京 办公室'],
  '우리는 서울에서 만났습니다.': ['서울'],
  'הפגישה בתל אביב נדחתה.': ['תל אביב'],
  'الاجتماع في القاهرة غدا.': ['القاهرة'],
  'Встреча в Москве перенесена.': ['Москве', 'встреча'],
  'The function readFileSync fails on src/gateway.ts with E_NOENT.': ['read file sync', 'gateway.ts', 'E_NOENT'],
  'Invoice 2024-0815 over 1,250.50 euros is open.': ['2024-0815', '1,250.50'],
  'The party was great 🎉🎂 in the garden.': ['🎉 garden'],
  'To be or not to be.': ['to be or not to be'],
  'कल दिल्ली में बैठक है।': ['दिल्ली'],
  ประชุมที่กรุงเทพพรุ่งนี้: ['กรุงเทพ'],
}

test('words of any script, names in code, numbers and accents find their note; other characters find nothing', async () => {
  const { result } = await startMemory()
  for (const [at, episode_body] of Object.keys(NOTES).entries())
    await result('add_memory', { name: `n${at}`, episode_body })
  const best = async (query: string) => (await result('search_memory_facts', { query, max_facts: 3 })).facts?.[0]?.fact
  for (const [note, queries] of Object.entries(NOTES))
    for (const query of queries) expect([query, await best(query)]).toEqual([query, note])
  for (const query of ['🎉', '…', '   ', '(((']) expect([query, await best(query)]).toEqual([query, undefined])
})

test('the same query gives the same results, in the same order', async () => {
  const { result } = await startMemory()
  for (let at = 0; at < 30; at++)
    await result('add_memory', { name: `n${at}`, episode_body: `The lamp number ${at} is lit.` })
  const ask = async () => (await result('search_memory_facts', { query: 'lamp lit', max_facts: 20 })).facts
  const first = await ask()
  expect(first).toHaveLength(20)
  expect(await ask()).toEqual(first)
})
