import { type Change, type ConfigDifference, hasNoChanges } from '../config/difference.ts'
import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Log } from '../telemetry/log.ts'

interface ReloadOptions {
  readonly load: () => Promise<Snapshot>
  readonly swap: (next: Snapshot) => ConfigDifference
  readonly first: Snapshot
  readonly log: Log
}

/**
 * Returns a function that reloads the configuration. An invalid one changes nothing and is logged once. A reload by
 * hand (SIGHUP) is always logged, one for a changed file only if something differs.
 */
export const createReloader = ({ load, swap, first, log }: ReloadOptions): ((byHand?: boolean) => Promise<void>) => {
  let warnings = first.warnings
  let lastError: string | undefined
  let running: Promise<void> | undefined
  let isRequested = false
  let isByHand = false

  const reloadOnce = async (isLogged: boolean): Promise<void> => {
    try {
      const next = await load()
      const difference = swap(next)
      for (const warning of next.warnings.filter(warning => !warnings.includes(warning))) log.warn({}, warning)
      warnings = next.warnings
      logDifference(difference, isLogged)
      lastError = undefined
    } catch (error) {
      if (!(error instanceof ConfigError)) return log.error({ err: error }, 'reloading the configuration failed')
      if (error.message === lastError && !isLogged) return
      lastError = error.message
      log.error({}, `the configuration was not reloaded, the previous one stays in force: ${error.message}`)
    }
  }

  const logDifference = (difference: ConfigDifference, isLogged: boolean): void => {
    const { servers, workspaces, policies, settings } = difference
    if (hasNoChanges(difference))
      return isLogged || lastError !== undefined ? log.info({}, 'the configuration is unchanged') : undefined
    const fields = {
      servers: namesByKind(servers),
      workspaces: namesByKind(workspaces),
      policies: namesByKind(policies),
    }
    if (servers.length + workspaces.length + policies.length > 0) log.info(fields, 'the configuration has changed')
    if (settings.length === 0) return
    const places = settings.flatMap(({ name, details }) => details.map(({ at }) => `${name}.${at}`))
    log.warn({}, `takes effect after a restart: ${places.join(', ')}`)
  }

  /** Runs one reload at a time; requests that arrive meanwhile share the next one. */
  return (byHand = false) => {
    isRequested = true
    isByHand ||= byHand
    running ??= (async () => {
      while (isRequested) {
        const isLogged = isByHand
        isRequested = isByHand = false
        await reloadOnce(isLogged)
      }
      running = undefined
    })()
    return running
  }
}

const namesByKind = (changes: readonly Change[]): Readonly<Record<string, readonly string[]>> | undefined => {
  if (changes.length === 0) return undefined
  const kinds = [...new Set(changes.map(({ kind }) => kind))]
  return Object.fromEntries(kinds.map(kind => [kind, changes.filter(it => it.kind === kind).map(({ name }) => name)]))
}
