import { compileTemplate } from '../../protocol/uri-template.ts'
import type { Client } from './client-command.ts'
import type { FrameHandlers } from './client-request.ts'
import type { ServerConnection } from './connection.ts'
import { ClientError, EXIT } from './exit-codes.ts'
import { findItems } from './items.ts'
import type { ClientOffer } from './running-command.ts'
import { unknownServer } from './sources.ts'

/** A connection that has a resource, and its URI. */
export interface ResourceSource {
  readonly connection: ServerConnection
  readonly uri: string
}

/** Finds the server of a resource: the one that was named, the only one, or the one that lists it or a template for it. */
export const sourceOfUri = async (
  client: Client,
  handlers: Partial<FrameHandlers>,
  offer: ClientOffer,
): Promise<ResourceSource> => {
  const { sources, words } = client
  const [named = ''] = words
  const uri = words.length > 0 ? named : (sources.item ?? '')
  if (words.length > 0 && sources.server === undefined) throw unknownServer(sources.item ?? '', sources.all)
  const [only, ...others] = sources.all
  if (only && others.length === 0) return { connection: await client.connect(only, handlers, offer), uri }
  const { items, errors } = await findItems(client, ['resources', 'templates'], source =>
    client.connect(source, handlers, offer),
  )
  const listed = items.find(({ definition }) => definition.get('uri')?.asString() === uri)
  const template = items.find(({ definition }) => {
    const text = definition.get('uriTemplate')?.asString()
    return text !== undefined && compileTemplate(text).matches(uri)
  })
  const found = listed ?? template
  if (found) return { connection: found.session, uri }
  if (errors[0]) throw errors[0]
  throw new ClientError(`no server lists ${uri}; name the server: dragoman read SERVER ${uri}`, EXIT.usage)
}
