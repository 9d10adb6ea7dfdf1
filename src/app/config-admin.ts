import type { ConfigDocument } from '../admin/api/config.ts'
import type { ConfigEditorOptions } from '../admin/config-editor.ts'
import type { EventFeed } from '../admin/event-feed.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import { SILENT } from '../telemetry/log.ts'

interface ConfigAdminOptions extends Omit<ConfigEditorOptions, 'rejected' | 'tryServer'> {
  readonly version: string
  readonly data: string | undefined
  readonly writeAudit: WriteAuditEvent | undefined
  readonly events: Pick<EventFeed, 'publish'>
}

/** What the admin API needs of the configuration; it remembers whether the last reload was rejected. */
export interface ConfigAdmin {
  readonly editor: ConfigEditorOptions
  /** A changed configuration is invalid and was not applied. */
  reject(reason: string): void
  /** A configuration was applied. */
  accept(): void
}

const TRY_MS = 30_000 // npx and uvx download a program when it is first started

export const createConfigAdmin = ({
  version,
  data,
  writeAudit,
  events,
  ...options
}: ConfigAdminOptions): ConfigAdmin => {
  let rejected: ConfigDocument['rejected']
  const publish = (): void => events.publish('config', { file: options.current().file })

  const tryServer = async (snapshot: Snapshot, name: string, signal: AbortSignal) => {
    const { checkServers } = await import('./check.ts')
    const { servers } = await checkServers(snapshot, {
      log: SILENT,
      version,
      data,
      timeoutMs: TRY_MS,
      signal,
      keepStderr: true,
    })
    const [report] = servers
    return report ?? { name, state: 'untried' as const, transport: '-' }
  }

  return {
    editor: { ...options, rejected: () => rejected, tryServer },
    reject: reason => {
      rejected = { reason, at: Date.now() }
      writeAudit?.('config_rejected', { reason })
      publish()
    },
    accept: () => {
      rejected = undefined
      publish()
    },
  }
}

/** What ends with a workspace; with calls in flight only if `all` is true. */
interface EndedWithWorkspace {
  endIn(workspace: string, all: boolean): void
}

/** Ends what is open in the workspaces that a configuration had: at once, or when its calls have settled. */
export const endRemovedWorkspaces = (
  { workspaces }: Snapshot,
  hasWorkspace: (name: string) => boolean,
  open: readonly EndedWithWorkspace[],
  settled: Promise<void>,
): void => {
  const removed = [...workspaces.keys()].filter(name => !hasWorkspace(name))
  const endIn = (all: boolean): void => {
    for (const name of removed.filter(name => !hasWorkspace(name))) for (const each of open) each.endIn(name, all)
  }
  endIn(false)
  void settled.then(() => endIn(true))
}
