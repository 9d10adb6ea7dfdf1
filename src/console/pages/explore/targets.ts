import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { GatewayStatus } from '../../../protocol/status.ts'
import { api, messageOf } from '../../api.ts'
import { onFeed } from '../../events.ts'
import { checkWaiting } from './calls.ts'

/** Where calls can go: a workspace of several servers, or one server. */
export interface ExploreTarget {
  readonly name: string
  readonly isServer: boolean
  readonly servers: readonly string[]
  readonly problem: string | undefined // why it does not answer
}

/** One choice of the user: a target, or one server of it, whose items alone are shown. */
export interface TargetChoice {
  readonly target: string
  readonly server: string | undefined
  readonly label: string
}

/** Undefined until the gateway has answered. */
export const targets = signal<readonly ExploreTarget[] | undefined>(undefined)
export const targetsError = signal<string | undefined>(undefined)

const WORKING: ReadonlySet<string> = new Set(['ready', 'untried', 'connecting', 'degraded'])

export const readTargets = ({ workspaces }: Pick<GatewayStatus, 'workspaces'>): readonly ExploreTarget[] =>
  workspaces.map(({ name, servers }) => {
    const [first] = servers
    const isServer = servers.length === 1 && first?.name === name
    const problem =
      isServer && !WORKING.has(first.state)
        ? `${first.state}${first.reason === undefined ? '' : `: ${first.reason}`}`
        : undefined
    return { name, isServer, servers: servers.map(server => server.name), problem }
  })

/**
 * All targets, each workspace followed by its servers. A server has a URL only if there is a workspace of it alone; the others
 * are called through their workspace, under the names that it lists.
 */
export const readChoices = (known: readonly ExploreTarget[]): readonly TargetChoice[] => {
  const withUrl = new Set(known.flatMap(({ isServer, name }) => (isServer ? name : [])))
  return known.flatMap(({ name, isServer, servers }) => {
    const label = isServer ? name : `${name} (${servers.length === 1 ? '1 server' : `${servers.length} servers`})`
    const inside = servers.length > 1 ? servers.filter(server => !withUrl.has(server)) : []
    return [
      { target: name, server: undefined, label },
      ...inside.map(server => ({ target: name, server, label: `${name} › ${server}` })),
    ]
  })
}

/** Whether all that a target lists comes from one server; false while that is not known. */
export const isOneServer = (target: string | undefined): boolean =>
  targets.peek()?.find(({ name }) => name === target)?.servers.length === 1

const lastStates = new Map<string, string>()

/** The questions of a server end with its process, which the gateway can only say if it is asked. */
const checkChanged = ({ workspaces }: GatewayStatus): void => {
  for (const { name, servers } of workspaces) {
    const states = JSON.stringify(servers.map(({ state, since, processes }) => [state, since, processes]))
    const before = lastStates.get(name)
    lastStates.set(name, states)
    if (before !== undefined && before !== states) checkWaiting(name)
  }
}

const accept = (status: GatewayStatus): void => {
  checkChanged(status)
  targets.value = readTargets(status)
  targetsError.value = undefined
}

/** Keeps the targets current while the page is shown. */
export const useTargets = (): void => {
  useEffect(() => {
    api.get<GatewayStatus>('admin/status').then(accept, (error: unknown) => {
      targetsError.value = messageOf(error)
    })
    return onFeed('status', data => accept(data as GatewayStatus))
  }, [])
}
