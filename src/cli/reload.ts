import { type Change, type Difference, isNone } from '../config/difference.ts'
import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Log } from '../telemetry/log.ts'

interface Options {
  readonly load: () => Promise<Snapshot>
  readonly swap: (next: Snapshot) => Difference
  readonly first: Snapshot
  readonly log: Log
}

/**
 * Reads the configuration again and goes over to it; one that is wrong changes nothing and is complained of once. Whoever
 * asked for it is told in any case.
 */
export const createReloader = ({ load, swap, first, log }: Options): ((byHand?: boolean) => Promise<void>) => {
  let warnings = first.warnings
  let complaint: string | undefined
  let running: Promise<void> | undefined
  let isStale = false
  let isAsked = false

  const read = async (isAwaited: boolean): Promise<void> => {
    try {
      const next = await load()
      const difference = swap(next)
      for (const warning of next.warnings.filter(warning => !warnings.includes(warning))) log.warn({}, warning)
      warnings = next.warnings
      tell(difference, isAwaited)
      complaint = undefined
    } catch (error) {
      if (!(error instanceof ConfigError)) return log.error({ err: error }, 'reading the configuration again failed')
      if (error.message === complaint && !isAwaited) return
      complaint = error.message
      log.error({}, `the configuration from before stays: ${error.message}`)
    }
  }

  const tell = (difference: Difference, isAwaited: boolean): void => {
    const { servers, workspaces, policies, settings } = difference
    if (isNone(difference))
      return isAwaited || complaint !== undefined ? log.info({}, 'the configuration is as before') : undefined
    const fields = { servers: summary(servers), workspaces: summary(workspaces), policies: summary(policies) }
    if (servers.length + workspaces.length + policies.length > 0) log.info(fields, 'the configuration has changed')
    if (settings.length === 0) return
    const places = settings.flatMap(({ name, details }) => details.map(({ at }) => `${name}.${at}`))
    log.warn({}, `needs a restart to count: ${places.join(', ')}`)
  }

  /** One at a time; whoever comes meanwhile is served by one more. */
  const reload = (byHand = false): Promise<void> => {
    isStale = true
    isAsked ||= byHand
    running ??= (async () => {
      while (isStale) {
        const isAwaited = isAsked
        isStale = isAsked = false
        await read(isAwaited)
      }
      running = undefined
    })()
    return running
  }
  return reload
}

/** Names by what happened to them; nothing where nothing did. */
const summary = (changes: readonly Change[]): Readonly<Record<string, readonly string[]>> | undefined => {
  if (changes.length === 0) return undefined
  const kinds = [...new Set(changes.map(({ kind }) => kind))]
  return Object.fromEntries(kinds.map(kind => [kind, changes.filter(it => it.kind === kind).map(({ name }) => name)]))
}
