import type { ClientInfo, ClientLink, ClientList } from '../../../admin/api/clients.ts'
import { OTHER_CLIENTS, type OtherClient } from './other-clients.ts'

/** A row of the list of clients. */
export type ClientRow =
  | { readonly kind: 'known'; readonly id: string; readonly title: string; readonly client: ClientInfo }
  | { readonly kind: 'other'; readonly id: string; readonly title: string; readonly client: OtherClient }

/** What a file says about a client, as a state with a word. */
export interface ClientVerdict {
  readonly state: 'ok' | 'warn' | 'error' | 'off'
  readonly label: string
}

/** The clients that are known, and then the others. */
export const clientRows = ({ clients }: ClientList, search: string): readonly ClientRow[] => {
  const wanted = search.trim().toLowerCase()
  const known = clients.map((client): ClientRow => ({ kind: 'known', id: client.id, title: client.title, client }))
  const others = OTHER_CLIENTS.map(
    (client): ClientRow => ({ kind: 'other', id: client.id, title: client.title, client }),
  )
  return [...known, ...others].filter(({ id, title }) => `${id} ${title}`.toLowerCase().includes(wanted))
}

/** How a client with a file stands to a workspace; undefined: it is not told to this user. */
export const verdictOf = (
  { state, entry }: ClientInfo,
  { workspace, needsToken, hasAuthServer }: Pick<ClientList, 'workspace' | 'needsToken' | 'hasAuthServer'>,
): ClientVerdict | undefined => {
  if (!state) return undefined
  const { exists, problem, links, others } = state
  if (problem !== undefined) return { state: 'error', label: 'Cannot be changed' }
  const isRefused = ({ transport, hasToken }: ClientLink): boolean =>
    transport === 'http' && !hasToken && needsToken && !hasAuthServer
  if (links.some(isRefused)) return { state: 'warn', label: 'Linked without a token' }
  if (links.some(link => link.workspace === workspace)) return { state: 'ok', label: 'Linked' }
  if (links.length > 0) return { state: 'ok', label: `Linked to ${links.map(link => link.workspace).join(', ')}` }
  if (others.includes(entry)) return { state: 'warn', label: 'Other server of this name' }
  return { state: 'off', label: exists ? 'Not linked' : 'No file' }
}

/** The command that does the same as the page. */
export const linkCommand = (action: 'link' | 'unlink', id: string, workspace: string, name?: string): string =>
  [
    `dragoman ${action} ${id}`,
    ...(workspace === 'default' ? [] : [`--workspace ${workspace}`]),
    ...(name === undefined ? [] : [`--name ${name}`]),
  ].join(' ')

/**
 * A snippet as its reader needs it: with the token, and for a reader elsewhere with the address at which they reach the
 * gateway.
 */
export const fillSnippet = (
  text: string,
  { origin, placeholder }: Pick<ClientList, 'origin' | 'placeholder'>,
  base: string,
  secret: string | undefined,
): string => {
  const addressed = text.replaceAll(origin, () => base)
  return secret === undefined ? addressed : addressed.replaceAll(placeholder, () => secret)
}
