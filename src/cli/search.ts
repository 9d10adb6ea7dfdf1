import { createClientCommand } from './client/client-command.ts'
import { EXIT } from './client/exit-codes.ts'
import { findItems, type ListName } from './client/items.ts'
import { listJson, noteMissing, printItems, reportErrors } from './client/list-command.ts'
import { searchItems } from './client/search-items.ts'

const ALL: readonly ListName[] = ['tools', 'prompts', 'resources', 'templates']
const NOTHING_FOUND = 1

/** Finds tools, prompts and resources by words. */
export const run = createClientCommand({
  usage: ['search WORD…', 'search URL WORD…', 'search WORD… -- COMMAND…'],
  about: `Finds the tools, prompts, resources and templates of all servers that have every word in their name, description or
arguments, in any form; the best first. If none has every word, those that have the most. Exit code 1: nothing was found.`,
  examples: [
    ['dragoman search elicit', 'everything about a word'],
    ['dragoman search image content', 'both words'],
  ],
  words: [1, Number.POSITIVE_INFINITY],
  hasServerWord: false,
  run: async client => {
    const { items, errors, missing } = await findItems(client, ALL)
    const { found, matched, wanted } = searchItems(items, client.words)
    if (matched > 0 && matched < wanted)
      client.note(`nothing has all of these words; this has ${matched} of ${wanted}:`)
    if (client.isJson) client.write(`${listJson(found, ALL)}\n`)
    else if (found.length > 0) printItems(client, found, ALL)
    else client.note(`nothing has ${client.words.join(' ')} in its name, description or arguments`)
    noteMissing(client, missing)
    const code = reportErrors(client, errors)
    return code === EXIT.ok && found.length === 0 ? NOTHING_FOUND : code
  },
})
