import { META } from '../../protocol/meta.ts'
import type { GatewayStatus } from '../../protocol/status.ts'
import type { Json } from '../../wire/json/json.ts'
import { requestDaemon } from '../daemon-client.ts'
import type { Client } from './client-command.ts'
import { prettyJson } from './render.ts'
import type { TargetSource } from './sources.ts'
import { safeLine, safeText, styleOf } from './terminal.ts'

/** Prints what a server says about itself. */
export const describeServer = async (client: Client): Promise<void> => {
  const [source] = client.sources.all
  if (!source) return
  const connection = await client.connect(source)
  const found = await connection.discover()
  if (client.isJson) return client.write(`${found}\n`)
  const spoken = (await revisionAtDaemon(client, source)) ?? connection.revision
  const { bold, dim } = styleOf(client.terminal.output, client.terminal.env)
  const info = found.at('_meta', META.serverInfo)
  const title = info?.get('title')?.asString()
  const name = [info?.get('name')?.asString(), info?.get('version')?.asString()].filter(part => part).join(' ')
  const parts = [
    `${bold(safeLine(title ?? name))}${title === undefined ? '' : ` (${safeLine(name)})`}, speaks ${spoken}`,
    safeText(info?.get('description')?.asString() ?? '').trim(),
    safeText(found.get('instructions')?.asString() ?? '').trim(),
    `${dim('Offers:')} ${offersOf(found.get('capabilities'))}`,
  ]
  client.write(`${parts.filter(part => part !== '').join('\n\n')}\n`)
}

/** The revision between the daemon and the server; the command itself speaks the newest one with every daemon. */
const revisionAtDaemon = async ({ sources }: Client, { connection }: TargetSource): Promise<string | undefined> => {
  if (connection.kind !== 'daemon') return undefined
  const { servers } = (await (await requestDaemon(connection.daemon, '/admin/status')).json()) as GatewayStatus
  return servers.find(({ name }) => name === sources.server)?.revision
}

/** `tools (listChanged), logging`. */
const offersOf = (capabilities: Json | undefined): string => {
  const offers = (capabilities?.entries() ?? []).map(([name, value]) => {
    const flags = value.entries().filter(([, flag]) => flag.asBoolean() === true)
    const rest = value.isObject && flags.length === 0 && value.memberCount > 0 ? ` ${prettyJson(value)}` : ''
    return safeLine(`${name}${flags.length > 0 ? ` (${flags.map(([flag]) => flag).join(', ')})` : rest}`)
  })
  return offers.join(', ') || 'nothing'
}
