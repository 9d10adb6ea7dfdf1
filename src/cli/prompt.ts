import { nearest } from '../config/problems.ts'
import { Json } from '../wire/json/json.ts'
import { createClientCommand } from './client/client-command.ts'
import { ClientError, EXIT } from './client/exit-codes.ts'
import { chooseItem, findItems, type Item, labelOf } from './client/items.ts'
import { createMediaOutput } from './client/media.ts'
import { createQuestions, QUESTION_FLAGS } from './client/questions.ts'
import { renderMessages } from './client/render.ts'
import { styleOf } from './client/terminal.ts'
import { readPairs } from './client/words.ts'

/** Gets a prompt. */
export const run = createClientCommand({
  usage: ['prompt SERVER/NAME [KEY=VALUE…]', 'prompt URL NAME [KEY=VALUE…]', 'prompt NAME [KEY=VALUE…] -- COMMAND…'],
  about: 'Fills in a prompt and prints its messages.',
  examples: [
    ['dragoman prompt demo/test_simple_prompt', 'a prompt without arguments'],
    ['dragoman prompt demo/test_prompt_with_arguments arg1=a arg2=b', 'with arguments'],
  ],
  flags: QUESTION_FLAGS,
  words: [1, Number.POSITIVE_INFINITY],
  hasServerWord: true,
  run: async client => {
    const { terminal } = client
    const given = readPairs(client.words)
    const questions = createQuestions(client, { pause: () => {} })
    try {
      const found = await findItems(client, ['prompts'], source =>
        client.connect(source, { answer: questions.answer }, questions.offer),
      )
      const prompt = chooseItem(client, 'prompts', found)
      checkArguments(prompt, given)
      const params = Json.of({ name: prompt.sentName, arguments: Object.fromEntries(given) })
      const result = await prompt.session.request('prompts/get', params, 'reading')
      if (client.isJson) client.write(`${result}\n`)
      else {
        const stream = terminal.output
        const media = createMediaOutput(terminal, undefined)
        const messages = result.get('messages')?.elements() ?? []
        client.write(await renderMessages(messages, { stream, style: styleOf(stream, terminal.env), media }))
      }
      return EXIT.ok
    } finally {
      questions.close()
    }
  },
})

const checkArguments = (prompt: Item, given: ReadonlyMap<string, string>): void => {
  const known = (prompt.definition.get('arguments')?.elements() ?? []).map(each => ({
    name: each.get('name')?.asString() ?? '',
    isRequired: each.get('required')?.asBoolean() === true,
  }))
  const names = known.map(({ name }) => name)
  const unknown = [...given.keys()].find(name => !names.includes(name))
  const missing = known.filter(({ name, isRequired }) => isRequired && !given.has(name)).map(({ name }) => name)
  if (unknown === undefined && missing.length === 0) return
  const meant = unknown === undefined ? undefined : nearest(unknown, names)
  const problem =
    unknown === undefined
      ? `missing ${missing.join(', ')}`
      : `there is no argument ${unknown}${meant === undefined ? '' : `; did you mean ${meant}?`}`
  const signature = known.map(({ name, isRequired }) => `${name}${isRequired ? '' : '?'}`).join(', ')
  throw new ClientError(`${problem}\nUsage: ${labelOf(prompt)}(${signature})`, EXIT.usage)
}
