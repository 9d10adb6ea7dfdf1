import { Json } from '../wire/json/json.ts'
import { createClientCommand } from './client/client-command.ts'
import { ClientError, EXIT } from './client/exit-codes.ts'
import { createMediaOutput } from './client/media.ts'
import { createQuestions, QUESTION_FLAGS } from './client/questions.ts'
import { renderContents } from './client/render.ts'
import { sourceOfUri } from './client/resource-source.ts'
import { styleOf } from './client/terminal.ts'
import { textOf } from './usage.ts'

/** Reads a resource. */
export const run = createClientCommand({
  usage: ['read [SERVER] URI', 'read URL URI', 'read URI -- COMMAND…'],
  about: 'Reads a resource: text goes to stdout, bytes go to a file, or to stdout if that is no terminal.',
  examples: [
    ['dragoman read test://static-text', 'from whichever server has it'],
    ['dragoman read demo test://template/7/data', 'from one server'],
    ['dragoman read test://static-binary > pixel.png', 'bytes'],
  ],
  flags: { ...QUESTION_FLAGS, save: { value: 'DIR', help: 'save bytes here' } },
  words: [1, 2],
  hasServerWord: true,
  run: async client => {
    const { terminal, flags } = client
    const questions = createQuestions(client, { pause: () => {} })
    try {
      const { connection, uri } = await sourceOfUri(client, { answer: questions.answer }, questions.offer)
      const result = await connection.request('resources/read', Json.of({ uri }), 'reading')
      if (client.isJson) client.write(`${result}\n`)
      else {
        const contents = result.get('contents')?.elements() ?? []
        if (contents.length === 0) throw new ClientError(`${uri} has no contents`, EXIT.protocol)
        const stream = terminal.output
        const media = createMediaOutput(terminal, textOf(flags, 'save'))
        for (const each of contents) {
          const blob = each.get('blob')?.asString()
          const isPiped = stream.isTTY !== true && textOf(flags, 'save') === undefined
          if (blob !== undefined && isPiped) stream.write(Buffer.from(blob, 'base64'))
          else
            client.write(
              endLine(
                await renderContents(each, { stream, style: styleOf(stream, terminal.env), media }),
                stream.isTTY,
              ),
            )
        }
      }
      return EXIT.ok
    } finally {
      questions.close()
    }
  },
})

/** A pipe gets the text as it is; a terminal gets a line break after it. */
const endLine = (text: string, isTTY: boolean | undefined): string =>
  isTTY && !text.endsWith('\n') ? `${text}\n` : text
