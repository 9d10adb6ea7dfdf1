import { LIST_CHANGES, NOTIFICATIONS } from '../protocol/notifications.ts'
import { Json } from '../wire/json/json.ts'
import { type Client, createClientCommand } from './client/client-command.ts'
import type { ServerConnection } from './client/connection.ts'
import { ClientError, EXIT } from './client/exit-codes.ts'
import { sourceOfUri } from './client/resource-source.ts'
import { safeLine } from './client/terminal.ts'
import { isUriWord } from './client/words.ts'

const LISTS_WORD = 'lists'

/** Prints changes until Ctrl-C. */
export const run = createClientCommand({
  usage: ['watch [SERVER] URI', 'watch [SERVER] lists', 'watch URL URI | lists', 'watch URI | lists -- COMMAND…'],
  about: `Prints a line whenever a resource changes, or a list of tools, prompts or resources. Ends with Ctrl-C, or when the
reader of the output has gone.`,
  examples: [
    ['dragoman watch test://watched-resource', 'a resource'],
    ['dragoman watch lists', 'the lists of every server'],
  ],
  words: [1, 2],
  hasServerWord: true,
  run: async client => {
    const { output } = client.terminal
    const stop = (): void => client.interrupted.abort({ kind: 'gone' })
    output.on('error', stop)
    try {
      const word = client.words[0] ?? client.sources.item ?? ''
      if (word !== LISTS_WORD && !isUriWord(word))
        throw new ClientError(
          `expected the URI of a resource, or "${LISTS_WORD}", got ${JSON.stringify(word)}`,
          EXIT.usage,
        )
      if (word === LISTS_WORD) await watchLists(client)
      else await watchResource(client)
      if (client.interrupted.reason?.kind === 'gone') return EXIT.ok
      if (client.interrupted.reason) return EXIT.cancelled
      throw new ClientError('the server ended the subscription', EXIT.unreachable)
    } finally {
      output.off('error', stop)
    }
  },
})

const watchResource = async (client: Client): Promise<void> => {
  const { connection, uri } = await sourceOfUri(client, {}, { capabilities: Json.empty })
  await watch(client, connection, { uris: [uri], lists: false }, uri)
}

const watchLists = async (client: Client): Promise<void> => {
  await Promise.all(
    client.sources.all.map(async source => {
      const connection = await client.connect(source)
      await watch(client, connection, { uris: [], lists: true }, LISTS_WORD, source.label)
    }),
  )
}

const watch = (
  client: Client,
  connection: ServerConnection,
  request: { readonly uris: readonly string[]; readonly lists: boolean },
  what: string,
  label?: string,
): Promise<void> => {
  let refusal: ClientError | undefined
  const ended = connection.watch(request, (method, params) => {
    if (method === NOTIFICATIONS.acknowledged) {
      refusal = acknowledge(client, request.uris, params, what)
      if (refusal) client.interrupted.abort({ kind: 'expired' })
      return
    }
    const change = describeChange(method, params)
    if (change === undefined) return
    const time = new Date().toISOString()
    if (client.isJson) client.write(`${Json.of({ method, params })}\n`)
    else
      client.write(`${time}\t${change}${label === undefined || client.sources.all.length === 1 ? '' : `\t${label}`}\n`)
  })
  return ended.then(() => {
    if (refusal) throw refusal
  })
}

/** The server says what it will announce; an error if it refuses. */
const acknowledge = (client: Client, uris: readonly string[], params: Json, what: string): ClientError | undefined => {
  const honoured =
    params
      .at('notifications', 'resourceSubscriptions')
      ?.elements()
      .map(uri => uri.asString()) ?? []
  const refused = uris.find(uri => !honoured.includes(uri))
  if (refused !== undefined)
    return new ClientError(`the server does not offer subscriptions to ${refused}`, EXIT.protocol)
  client.note(`watching ${what}; end with Ctrl-C`)
  return undefined
}

const CHANGED: ReadonlyMap<string, string> = new Map(
  Object.entries(LIST_CHANGES).map(([list, { method }]) => [method, `the list of ${list} changed`]),
)

const describeChange = (method: string, params: Json): string | undefined =>
  method === NOTIFICATIONS.resourceUpdated
    ? `${safeLine(params.get('uri')?.asString() ?? '')} changed`
    : CHANGED.get(method)
