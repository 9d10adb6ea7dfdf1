import { LOG_SEVERITIES } from '../protocol/methods.ts'
import { Json } from '../wire/json/json.ts'
import { ArgumentError, buildArguments } from './client/arguments.ts'
import { createCallMonitor } from './client/call-monitor.ts'
import { type Client, createClientCommand } from './client/client-command.ts'
import { inputSchemaOf, toolSignature } from './client/describe-tool.ts'
import { ClientError, EXIT } from './client/exit-codes.ts'
import { chooseItem, findItems, type Item } from './client/items.ts'
import { createMediaOutput } from './client/media.ts'
import { createQuestions, QUESTION_FLAGS } from './client/questions.ts'
import { renderToolResult } from './client/render.ts'
import { styleOf } from './client/terminal.ts'
import { readWords } from './client/words.ts'
import { daemonOf, requestDaemon } from './daemon-client.ts'
import { textOf, UsageError } from './usage.ts'

/** Calls a tool. */
export const run = createClientCommand({
  usage: ['call SERVER/TOOL [KEY=VALUE…]', 'call URL TOOL [KEY=VALUE…]', 'call TOOL [KEY=VALUE…] -- COMMAND…'],
  about: `Calls a tool and prints its result. Values get the type that the tool's schema says: key=value is text, a number or
a truth value; repeat it for a list; a.b=value sets a member; key:=JSON is any JSON; key=@FILE is the content of a file;
{…}, @FILE and - (stdin) are all arguments as one JSON object. Questions of the server are asked in the terminal.`,
  examples: [
    ['dragoman call demo/example-echo message=hello', 'text'],
    ['dragoman call demo/test_x_mcp_header region=eu level=3', 'a number, because the schema says so'],
    ['dragoman call demo/json_schema_2020_12_tool name=Ann email=a@b.c \'address:={"city":"Oslo"}\'', 'JSON'],
    [
      'dragoman call demo/test_elicitation message=Who? --answer username=ann --answer email=a@b.c',
      'answer a question',
    ],
    ['dragoman call https://example.com/mcp example-echo message=hi --token $TOKEN', 'a server at a URL'],
    ['dragoman call demo/example-echo message=hi --json', 'the exact result'],
  ],
  flags: {
    ...QUESTION_FLAGS,
    task: { help: 'start the call as a task of the running daemon, and print its id' },
    'log-level': { value: 'LEVEL', help: `ask for log messages from this level on: ${LOG_SEVERITIES.join(', ')}` },
    save: { value: 'DIR', help: 'save images, audio and files here (default: show, or a folder for temporary files)' },
  },
  words: [1, Number.POSITIVE_INFINITY],
  hasServerWord: true,
  run: async client => {
    const { terminal, isJson, flags } = client
    const words = readWords(client.words)
    const level = textOf(flags, 'log-level')
    const logLevel = LOG_SEVERITIES.find(name => name === level)
    if (level !== undefined && !logLevel)
      throw new UsageError(`--log-level: expected one of ${LOG_SEVERITIES.join(', ')}`)
    const monitor = createCallMonitor(terminal)
    const questions = createQuestions(client, { pause: monitor.clear })
    const handlers = { notice: monitor.notice, answer: questions.answer }
    const offer = { ...questions.offer, logLevel: logLevel ?? 'info' }
    try {
      const found = await findItems(client, ['tools'], source => client.connect(source, handlers, offer))
      const tool = chooseItem(client, 'tools', found, toolSignature)
      const args = await readArguments(tool, words, client)
      if (flags.task) return await startTask(client, tool, args)
      if (logLevel) await tool.session.setLogLevel(logLevel)
      const params = Json.of({ name: tool.sentName, arguments: args, _meta: { progressToken: 'call' } })
      const result = await tool.session.request('tools/call', params, 'calling')
      monitor.clear()
      return isJson ? printRaw(client, result) : await printResult(client, result)
    } finally {
      monitor.clear()
      questions.close()
    }
  },
})

/** The daemon makes the call: it goes on when this program has ended. */
const startTask = async ({ write, flags, isJson, terminal }: Client, tool: Item, args: Json): Promise<number> => {
  if (tool.server === undefined)
    throw new ClientError('--task needs a server of the running daemon: name it as SERVER/TOOL', EXIT.usage)
  const { server, name } = tool
  const body = { server, tool: name, arguments: args.toValue() }
  const response = await requestDaemon(await daemonOf(flags), '/admin/tasks', body)
  const { id } = (await response.json()) as { readonly id: string }
  write(isJson ? `${JSON.stringify({ id })}\n` : `${id}\n`)
  if (!isJson) terminal.error.write(`"dragoman tasks wait ${id}" waits for the result and prints it.\n`)
  return EXIT.ok
}

/** The arguments by the tool's schema; an error shows its signature. */
const readArguments = async (tool: Item, words: ReturnType<typeof readWords>, { terminal }: Client): Promise<Json> => {
  try {
    return await buildArguments(words, inputSchemaOf(tool), { readStdin: () => readAll(terminal.input) })
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error
    throw new ClientError(`${error.message}\nUsage: ${toolSignature(tool)}`, EXIT.usage)
  }
}

const readAll = async (input: AsyncIterable<Buffer | string>): Promise<string> => {
  let text = ''
  for await (const chunk of input) text += chunk.toString()
  return text
}

const isToolError = (result: Json): boolean => result.get('isError')?.asBoolean() === true

const printRaw = (client: Client, result: Json): number => {
  client.write(`${result}\n`)
  return isToolError(result) ? EXIT.toolError : EXIT.ok
}

/** A result goes to stdout, the message of a tool that failed to stderr. */
const printResult = async (client: Client, result: Json): Promise<number> => {
  const { terminal, flags } = client
  const stream = isToolError(result) ? terminal.error : terminal.output
  const media = createMediaOutput(terminal, textOf(flags, 'save'))
  const text = await renderToolResult(result, { stream, style: styleOf(stream, terminal.env), media })
  if (!isToolError(result)) {
    client.write(text)
    return EXIT.ok
  }
  stream.write(`${styleOf(stream, terminal.env).red('the tool reported an error:')} ${text}`)
  return EXIT.toolError
}
