import { createHash } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import { resolve } from 'node:path'
import { currentPlace, MCP_CLIENTS, type McpClient } from '../config/clients/client-files.ts'
import { readClientState, refuseLinks } from '../config/clients/client-state.ts'
import { clientFile, entryText } from '../config/clients/edit-client.ts'
import { lineDifference } from '../config/clients/line-difference.ts'
import { type EntryChange, type PlannedChange, planChange } from '../config/clients/link-client.ts'
import {
  entryNameOf,
  findKnownClient,
  type LinkTarget,
  LinkWishError,
  linkEntry,
  transportFor,
} from '../config/clients/link-entry.ts'
import { maskValues } from '../config/clients/mask-values.ts'
import { stdioCommand, stdioTargetOf } from '../config/clients/stdio-command.ts'
import { announcedDaemon } from '../config/daemon-file.ts'
import { ConfigError, suggest } from '../config/problems.ts'
import { isFromThisMachine } from '../fronts/http/guard.ts'
import type { ClientApplied, ClientInfo, ClientList, ClientPreview } from './api/clients.ts'
import { type ClientWish, readClientWish } from './client-wish.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'

export interface ClientEndpointsOptions {
  readonly origin: () => string
  readonly publicUrl?: string | undefined
  readonly workspaces: () => readonly string[]
  readonly isTokenRequired: () => boolean
  readonly hasAuthServer: boolean
  readonly hasFixedPort: boolean // the configuration names one
  readonly data?: string | undefined // the data directory
  readonly config: () => string | undefined // the configuration file
  readonly isEmbedded: boolean // in another program: the command line of this process is not that of Dragoman
}

/** Stands for the token in snippets: text that is valid wherever a token is. */
const PLACEHOLDER = 'YOUR_TOKEN'
const TEXT = { type: 'string' }
const CHANGE = {
  action: { type: 'string', enum: ['link', 'unlink'] },
  workspace: TEXT,
  name: TEXT,
  transport: { type: 'string', enum: ['http', 'stdio'] },
  token: TEXT,
  isForced: { type: 'boolean' },
}

const APPLY = {
  type: 'object',
  properties: { ...CHANGE, stamp: TEXT, machine: TEXT },
  required: ['action', 'stamp'],
  additionalProperties: false,
}

/** The endpoints that connect clients of the user who runs the gateway, as `dragoman link` and `dragoman unlink` do. */
export const createClientEndpoints = (options: ClientEndpointsOptions): readonly AdminEndpoint[] => {
  const { origin, publicUrl, workspaces, isTokenRequired, hasAuthServer, hasFixedPort, data, isEmbedded } = options
  const port = (): number => Number(new URL(origin()).port)

  const checkWorkspace = (workspace: string): string => {
    if (workspaces().includes(workspace)) return workspace
    const shown = JSON.stringify(workspace.slice(0, 100))
    throw new AdminError(404, `There is no workspace ${shown}; ${suggest(workspace.slice(0, 100), workspaces())}`)
  }

  const targetFor = async (workspace: string): Promise<LinkTarget> => {
    const daemon = data === undefined ? undefined : await announcedDaemon(data)
    const config = options.config()
    const place = stdioTargetOf({ config: config && resolve(config), data }, process.env)
    return {
      origin: origin(),
      isLasting: daemon?.pid === process.pid ? daemon.isLasting === true : hasFixedPort,
      needsToken: isTokenRequired(),
      stdio: stdioCommand({ workspace, ...place }, isEmbedded ? [] : process.argv),
    }
  }

  const list = async ({ query, role, request }: AdminCall): Promise<ClientList> => {
    const workspace = checkWorkspace(query.get('workspace') ?? 'default')
    const target = await targetFor(workspace)
    const place = currentPlace()
    const describe = async ([id, client]: [string, McpClient]): Promise<ClientInfo> => ({
      id,
      title: client.title,
      format: client.format,
      entry: entryNameOf(workspace),
      transport: transportFor(client, { workspace }, target),
      snippets: snippetsOf(client, workspace, target),
      ...(role === 'owner' && { state: await readClientState(client, place, port()) }),
    })
    const [command, args] = target.stdio
    return {
      workspace,
      workspaces: workspaces(),
      origin: origin(),
      publicUrl,
      needsToken: target.needsToken,
      hasAuthServer,
      placeholder: PLACEHOLDER,
      stdio: [command, ...args],
      machine: hostname(),
      user: userName(),
      isHere: isFromThisMachine(request),
      clients: await Promise.all(Object.entries(MCP_CLIENTS).map(describe)),
    }
  }

  const plan = async (id: string, wish: ClientWish): Promise<EntryChange & PlannedChange> => {
    const client = clientOf(id)
    const workspace = checkWorkspace(wish.workspace)
    const place = currentPlace()
    const file = await clientFile(client, place, false)
    await refuseLinks(file, place.home)
    const entry =
      wish.action === 'link' ? entryFor(client, { ...wish, workspace }, await targetFor(workspace)) : undefined
    const change: EntryChange = { client, file, name: wish.name ?? entryNameOf(workspace), entry, port: port() }
    const planned = await planChange(change)
    if (planned.kind === 'other' && !wish.isForced)
      throw new AdminError(
        409,
        `${file} has another server ${JSON.stringify(change.name)}; choose another name for the entry, or replace it`,
        { kind: 'other' },
      )
    return { ...change, ...planned }
  }

  const preview = async ({ params, json }: AdminCall): Promise<ClientPreview> => {
    const planned = await plan(params.client ?? '', readClientWish(await json()))
    const { client, file, name, kind, before, after } = planned
    const masked = (text: string, isOwn: boolean): string => maskValues(client, text, isOwn ? name : undefined)
    return {
      file,
      name,
      kind,
      exists: before !== undefined,
      stamp: stampOf(before),
      lines: lineDifference(masked(before ?? '', kind !== 'other'), masked(after, true)),
    }
  }

  const apply = async ({ params, request, json }: AdminCall): Promise<ClientApplied> => {
    const body = await json()
    const machine = hostname()
    if (!isFromThisMachine(request) && body.get('machine')?.asString() !== machine)
      throw new AdminError(
        409,
        `The file is on the machine ${JSON.stringify(machine)} and belongs to the user ${JSON.stringify(userName())}; ` +
          'confirm that with "machine" in the body',
        { machine, user: userName() },
      )
    const { file, name, kind, before, save } = await plan(params.client ?? '', readClientWish(body))
    if (kind === 'missing') throw new AdminError(404, `${file} has no entry ${JSON.stringify(name)}`)
    if (stampOf(before) !== body.get('stamp')?.asString())
      throw new AdminError(409, `${file} has changed since the preview; look at the new one`, { kind: 'changed' })
    if (kind === 'same') return { file, name }
    return { file, name, backup: await save().catch(error => refuseWrite(file, error)) }
  }

  return [
    {
      method: 'GET',
      path: '/admin/clients',
      access: 'viewer',
      summary: 'Known clients, what belongs into their files for a workspace, and what is in them now',
      parameters: { workspace: { type: 'string', default: 'default' } },
      run: list,
    },
    {
      method: 'POST',
      path: '/admin/clients/{client}/preview',
      access: 'owner',
      summary: 'What linking or unlinking a client would change in its file',
      body: { type: 'object', properties: CHANGE, required: ['action'], additionalProperties: false },
      isAudited: false,
      run: preview,
    },
    {
      method: 'POST',
      path: '/admin/clients/{client}/apply',
      access: 'owner',
      summary: 'Links or unlinks a client, as previewed; a copy of its file is kept',
      body: APPLY,
      run: apply,
    },
  ]
}

const asRefusal = <T>(run: () => T): T => {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof LinkWishError)) throw error
    throw new AdminError(error.field === 'client' ? 404 : 422, `The ${error.field}: ${error.message}`)
  }
}

const clientOf = (id: string): McpClient => asRefusal(() => findKnownClient(id))
const entryFor = (...args: Parameters<typeof linkEntry>): object => asRefusal(() => linkEntry(...args))

/** The entries as they stand in the file of a client. */
const snippetsOf = (client: McpClient, workspace: string, target: LinkTarget): ClientInfo['snippets'] => {
  const textOf = (wish: Parameters<typeof linkEntry>[1]): string =>
    entryText(client, entryNameOf(workspace), linkEntry(client, wish, target))
  return {
    ...(client.httpEntry && {
      http: textOf({ workspace, transport: 'http', ...(target.needsToken && { token: PLACEHOLDER }) }),
    }),
    stdio: textOf({ workspace, transport: 'stdio' }),
  }
}

const stampOf = (text: string | undefined): string =>
  text === undefined ? 'absent' : createHash('sha256').update(text).digest('base64url')

const userName = (): string => {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown') // a container whose user has no name
  }
}

const refuseWrite = (file: string, error: unknown): never => {
  const { code } = error as NodeJS.ErrnoException
  throw error instanceof ConfigError || code === undefined ? error : new ConfigError(`cannot write ${file}: ${code}`)
}
