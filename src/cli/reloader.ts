import { type ConfigDifference, changedNames, hasNoChanges } from '../config/difference.ts'
import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Log } from '../telemetry/log.ts'

interface ReloadOptions {
  readonly load: () => Promise<Snapshot>
  readonly swap: (next: Snapshot) => ConfigDifference
  readonly first: Snapshot
  readonly onRejected?: (reason: string) => void // the configuration is invalid
  readonly log: Log
}

/** What a reload has changed, or why it failed. */
export type ReloadOutcome =
  | { readonly kind: 'applied'; readonly difference: ConfigDifference }
  | { readonly kind: 'failed'; readonly error: unknown }

/**
 * Returns a function that reloads the configuration. An invalid one changes nothing and is logged once. A reload by
 * hand (SIGHUP, `dragoman reload`) is always logged, one for a changed file only if something differs.
 */
export const createReloader = ({
  load,
  swap,
  first,
  onRejected,
  log,
}: ReloadOptions): ((byHand?: boolean) => Promise<ReloadOutcome>) => {
  let warnings = first.warnings
  let lastError: string | undefined
  let running: Promise<ReloadOutcome> | undefined
  let isRequested = false
  let isByHand = false

  const reloadOnce = async (isLogged: boolean): Promise<ReloadOutcome> => {
    try {
      const next = await load()
      const difference = swap(next)
      for (const warning of next.warnings.filter(warning => !warnings.includes(warning))) log.warn({}, warning)
      warnings = next.warnings
      logDifference(difference, isLogged)
      lastError = undefined
      return { kind: 'applied', difference }
    } catch (error) {
      logError(error, isLogged)
      return { kind: 'failed', error }
    }
  }

  const logError = (error: unknown, isLogged: boolean): void => {
    if (!(error instanceof ConfigError)) return log.error({ err: error }, 'reloading the configuration failed')
    if (error.message === lastError && !isLogged) return
    lastError = error.message
    onRejected?.(error.message)
    log.error({}, `the configuration was not reloaded, the previous one stays in force: ${error.message}`)
  }

  const logDifference = (difference: ConfigDifference, isLogged: boolean): void => {
    const { servers, workspaces, policies, settings } = difference
    if (hasNoChanges(difference))
      return isLogged || lastError !== undefined ? log.info({}, 'the configuration is unchanged') : undefined
    const { settings: _settings, ...fields } = changedNames(difference)
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
      for (;;) {
        const isLogged = isByHand
        isRequested = isByHand = false
        const outcome = await reloadOnce(isLogged)
        if (isRequested) continue
        running = undefined
        return outcome
      }
    })()
    return running
  }
}
