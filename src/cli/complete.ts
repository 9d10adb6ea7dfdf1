import { Json } from '../wire/json/json.ts'
import { type Client, createClientCommand } from './client/client-command.ts'
import { ClientError, EXIT } from './client/exit-codes.ts'
import { chooseItem, findItems, type Item } from './client/items.ts'
import { safeLine } from './client/terminal.ts'
import { isUriWord, readPairs } from './client/words.ts'
import { UsageError } from './usage.ts'

/** Completes an argument of a prompt or a resource template. */
export const run = createClientCommand({
  usage: [
    'complete SERVER/PROMPT KEY=START [KEY=VALUE…]',
    'complete TEMPLATE KEY=START',
    'complete URL PROMPT KEY=START',
  ],
  about: 'Asks the server for values of an argument that begin with START. Further arguments are known values.',
  examples: [
    ['dragoman complete demo/test_prompt_with_arguments arg1=p', 'an argument of a prompt'],
    ["dragoman complete 'test://template/{id}/data' id=1", 'a variable of a resource template'],
  ],
  words: [2, Number.POSITIVE_INFINITY],
  hasServerWord: true,
  run: async client => {
    const [[name, value] = ['', ''], ...known] = readPairs(client.words)
    if (name === '') throw new UsageError('expected KEY=START')
    const { item, reference } = await findReference(client)
    const context = known.length > 0 ? { context: { arguments: Object.fromEntries(known) } } : {}
    const params = Json.of({ ref: reference, argument: { name, value }, ...context })
    const result = await item.session.request('completion/complete', params, 'calling')
    if (client.isJson) {
      client.write(`${result}\n`)
      return EXIT.ok
    }
    const completion = result.get('completion')
    const values = completion?.get('values')?.elements() ?? []
    client.write(values.map(each => `${safeLine(each.asString() ?? '')}\n`).join(''))
    const total = completion?.get('total')?.asNumber()
    if (completion?.get('hasMore')?.asBoolean())
      client.note(`and more${total === undefined ? '' : `, ${total} in total`}`)
    else if (values.length === 0) client.note('the server knows no value')
    return EXIT.ok
  },
})

const findReference = async (client: Client): Promise<{ item: Item; reference: Json }> => {
  const word = client.sources.item ?? ''
  if (!isUriWord(word)) {
    const prompt = chooseItem(client, 'prompts', await findItems(client, ['prompts']))
    return { item: prompt, reference: Json.of({ type: 'ref/prompt', name: prompt.sentName }) }
  }
  const { items, errors } = await findItems(client, ['templates'])
  const template = items.find(({ sentName }) => sentName === word)
  if (template) return { item: template, reference: Json.of({ type: 'ref/resource', uri: word }) }
  if (errors[0]) throw errors[0]
  const known = items.map(({ sentName }) => sentName).join(', ')
  throw new ClientError(
    `no server has the template ${word}; ${known === '' ? 'there are none' : `there are ${known}`}`,
    EXIT.usage,
  )
}
