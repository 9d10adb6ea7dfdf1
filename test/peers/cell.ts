/** What a client program is asked to do; each program leaves out what its SDK does not have. */
export const CLIENT_CHECKS = [
  'connect',
  'list-tools',
  'echo',
  'structured',
  'progress',
  'log',
  'tool-error',
  'error-code',
  'elicitation-accept',
  'elicitation-decline',
  'sampling',
  'roots',
  'read-resource',
  'resource-updated',
  'prompt',
  'completion',
  'ping',
  'cancellation',
  'big-result',
  'close',
  'no-warnings',
] as const

/** What a client program is asked to do (`--checks hidden`) where a budget hides all tools of the servers. */
export const HIDDEN_CHECKS = [
  'connect',
  'short-list',
  'find-hidden',
  'hidden-progress',
  'hidden-question',
  'hidden-by-name',
  'close',
  'no-warnings',
] as const

/** The name of a check of a client program. */
export type ClientCheck = (typeof CLIENT_CHECKS)[number] | (typeof HIDDEN_CHECKS)[number]

/** How one check ended; `detail` says why it failed. */
export interface CheckOutcome {
  readonly check: string
  readonly ok: boolean
  readonly detail: string
}

/** What one run found, or why it could not take place on this machine. */
export type CellResult =
  | { readonly kind: 'ran'; readonly revision: string; readonly outcomes: readonly CheckOutcome[] }
  | { readonly kind: 'skipped'; readonly reason: string }

/** One peer over one transport in one workspace: a row of the table of compatibility. */
export interface Cell {
  readonly side: 'client' | 'server'
  readonly peer: string
  readonly version: string
  /** How the peer and the gateway are connected, and what stands on the gateway's other side. */
  readonly route: string
  /** Every check that must be reported. */
  readonly checks: readonly string[]
  /** Runs with the tests; the others only with `npm run peers`. */
  readonly isQuick: boolean
  readonly note?: string
  run(): Promise<CellResult>
}

export const titleOf = ({ peer, version, route }: Cell): string => `${peer} ${version}, ${route}`

/** One outcome for every expected check, in their order: a check without a report has failed. */
export const completeOutcomes = (
  checks: readonly string[],
  reported: readonly CheckOutcome[],
  reason: string,
): CheckOutcome[] => {
  const unexpected = reported.filter(({ check }) => !checks.includes(check))
  return [
    ...checks.map(
      check => reported.find(outcome => outcome.check === check) ?? { check, ok: false, detail: `not run: ${reason}` },
    ),
    ...unexpected.map(({ check, detail }) => ({ check, ok: false, detail: `unexpected check: ${detail}` })),
  ]
}

/** Runs a cell; where it cannot even begin, every check has failed. */
export const runCell = async (cell: Cell): Promise<CellResult> => {
  try {
    return await cell.run()
  } catch (error) {
    return { kind: 'ran', revision: 'none', outcomes: completeOutcomes(cell.checks, [], String(error)) }
  }
}
