import type { CheckOutcome } from './cell.ts'

const CHECK_MS = 20_000

/** A check that fails by throwing. */
export type CheckBody = () => Promise<unknown>

/** Runs checks one after the other, each within its time. */
export const runChecks = async (checks: Readonly<Record<string, CheckBody>>): Promise<CheckOutcome[]> => {
  const outcomes: CheckOutcome[] = []
  for (const [check, body] of Object.entries(checks)) outcomes.push(await runCheck(check, body))
  return outcomes
}

const runCheck = async (check: string, body: CheckBody): Promise<CheckOutcome> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no result in ${CHECK_MS / 1000} s`)), CHECK_MS)
  })
  try {
    await Promise.race([body(), late])
    return { check, ok: true, detail: '' }
  } catch (error) {
    return { check, ok: false, detail: error instanceof Error ? error.message : String(error) }
  } finally {
    clearTimeout(timer)
  }
}
