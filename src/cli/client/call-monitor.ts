import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Json } from '../../wire/json/json.ts'
import { fitLine, safeLine, styleOf, type Terminal } from './terminal.ts'

/** Shows on stderr what a server reports during a call: progress as a bar, log messages as dimmed lines. */
export interface CallMonitor {
  notice(method: string, params: Json): void
  /** Removes the bar, for other output. */
  clear(): void
}

const BAR_CELLS = 24

export const createCallMonitor = ({ error, env }: Terminal): CallMonitor => {
  const style = styleOf(error, env)
  let isDrawn = false

  const clear = (): void => {
    if (isDrawn) error.write('\r\u001b[K')
    isDrawn = false
  }
  const draw = (line: string): void => {
    clear()
    error.write(fitLine(line, error))
    isDrawn = true
  }
  const log = (params: Json): void => {
    clear()
    const logger = params.get('logger')?.asString()
    const data = params.get('data')
    const text = safeLine(data?.asString() ?? data?.toString() ?? '')
    const level = safeLine(params.get('level')?.asString() ?? 'info')
    error.write(`${style.dim(`${level}: ${logger === undefined ? '' : `${safeLine(logger)}: `}${text}`)}\n`)
  }
  return {
    notice: (method, params) => {
      if (method === NOTIFICATIONS.message) log(params)
      else if (method === NOTIFICATIONS.progress && error.isTTY === true) draw(progressLine(params))
    },
    clear,
  }
}

/** `[######------]  50% message`, or the count where the total is not known. */
const progressLine = (params: Json): string => {
  const progress = params.get('progress')?.asNumber() ?? 0
  const total = params.get('total')?.asNumber()
  const message = safeLine(params.get('message')?.asString() ?? '')
  if (total === undefined || !(total > 0)) return `${progress}${message === '' ? '' : ` ${message}`}`
  const share = Math.min(1, Math.max(0, progress / total))
  const filled = Math.round(share * BAR_CELLS)
  const bar = `${'#'.repeat(filled)}${'-'.repeat(BAR_CELLS - filled)}`
  return `[${bar}] ${String(Math.round(share * 100)).padStart(3)}%${message === '' ? '' : ` ${message}`}`
}
