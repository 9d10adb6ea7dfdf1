import { createClientCommand } from './client/client-command.ts'
import { EXIT } from './client/exit-codes.ts'
import { findItems, type Item, LISTS, type ListName, labelOf } from './client/items.ts'
import { listJson, noteMissing, printItems, reportErrors } from './client/list-command.ts'

const ALL: readonly ListName[] = ['tools', 'prompts', 'resources', 'templates']
const NOTHING_FOUND = 1

/** Finds tools, prompts and resources by words. */
export const run = createClientCommand({
  usage: ['search WORD…', 'search URL WORD…', 'search WORD… -- COMMAND…'],
  about: `Finds the tools, prompts, resources and templates of all servers whose name or description has every word; the best
first. Exit code 1: nothing was found.`,
  examples: [
    ['dragoman search elicit', 'everything about a word'],
    ['dragoman search image content', 'both words'],
  ],
  words: [1, Number.POSITIVE_INFINITY],
  hasServerWord: false,
  run: async client => {
    const { items, errors, missing } = await findItems(client, ALL)
    const wanted = client.words.flatMap(words => words.toLowerCase().split(/\s+/)).filter(word => word !== '')
    const found = items
      .map(item => ({ item, score: scoreOf(item, wanted) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .map(({ item }) => item)
    if (client.isJson) client.write(`${listJson(found, ALL)}\n`)
    else if (found.length > 0) printItems(client, found, ALL)
    else client.note(`nothing has ${client.words.join(' ')} in its name or description`)
    noteMissing(client, missing)
    const code = reportErrors(client, errors)
    return code === EXIT.ok && found.length === 0 ? NOTHING_FOUND : code
  },
})

/** 0 unless every word occurs. A name counts more than a title, a title more than a description. */
const scoreOf = (item: Item, words: readonly string[]): number => {
  const { definition } = item
  const key = Object.values(LISTS).find(list => definition.has(list.key))?.key ?? 'name'
  const fields = [
    { text: `${labelOf(item)} ${definition.get(key)?.asString() ?? ''}`, weight: 4 },
    { text: `${definition.get('title')?.asString() ?? ''} ${definition.get('name')?.asString() ?? ''}`, weight: 2 },
    { text: definition.get('description')?.asString() ?? '', weight: 1 },
  ].map(({ text, weight }) => ({ text: text.toLowerCase(), weight }))
  const scores = words.map(word =>
    fields.reduce((sum, { text, weight }) => sum + (text.includes(word) ? weight : 0), 0),
  )
  return scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score, 0)
}
