import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { GatewayStatus } from '../../../protocol/status.ts'
import { api, messageOf } from '../../api.ts'
import { onFeed } from '../../events.ts'

/** Where calls can go: a workspace of several servers, or one server. */
export interface ExploreTarget {
  readonly name: string
  readonly isServer: boolean
  readonly servers: readonly string[]
  readonly problem: string | undefined // why it does not answer
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

const accept = (status: GatewayStatus): void => {
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
