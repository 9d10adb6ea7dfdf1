import type { Log } from '../../telemetry/log.ts'
import type { ListReading } from './read-list.ts'
import type { ListKind } from './view.ts'

const MOST_TOLD = 10 // in one line

/** Hears that a server lists something that cannot be shown as a whole; undefined: it does no more. */
export type OnListFault = (server: string, reason: string | undefined) => void

/** Takes what is wrong with a list that was read; nothing, where it is as it should be. */
export type ReportListFaults = (
  server: string,
  kind: ListKind,
  reading: Pick<ListReading, 'faults' | 'isComplete'>,
) => void

/** Says once what is wrong with a list of a server, and once that it no longer is. */
export const createListFaultReport = (log: Log, flawed: OnListFault = () => {}): ReportListFaults => {
  const known = new Map<string, { readonly server: string; readonly reason: string; readonly isWhole: boolean }>()

  return (server, kind, { faults: flaws, isComplete: isWhole }) => {
    const key = `${kind}\n${server}`
    const before = known.get(key)
    const reason = flaws.length > 0 ? `its list of ${kind}: ${flaws.slice(0, MOST_TOLD).join('; ')}` : undefined
    if (reason === before?.reason) return
    if (reason === undefined) known.delete(key)
    else known.set(key, { server, reason, isWhole })
    if (reason !== undefined) log.warn({ server, kind, flaws }, 'a server does not list rightly')
    const worst = [...known.values()].find(flaw => flaw.server === server && !flaw.isWhole)
    if (!isWhole || before?.isWhole === false) flawed(server, worst?.reason)
  }
}
