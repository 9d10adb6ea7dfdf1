import { emitKeypressEvents } from 'node:readline'
import type { Terminal } from '../client/terminal.ts'
import { type Choice, type ChoiceList, drawChoices, type PressedKey, stepChoices } from './choice-list.ts'

const SIZE = { columns: 80, rows: 24 } // of a terminal that does not say

/** Lets the user choose in the terminal; undefined if the user left. */
export const chooseInTerminal = (
  terminal: Terminal,
  first: Pick<ChoiceList, 'choices' | 'chosen'>,
  title: (chosen: readonly Choice[]) => string,
): Promise<ReadonlySet<number> | undefined> => {
  const { input, error } = terminal
  const raw = input as typeof input & { setRawMode?(isRaw: boolean): void }
  let list: ChoiceList = { ...first, cursor: 0, filter: '', isFiltering: false }
  let drawn = 0

  const clear = (): void => {
    if (drawn > 0) error.write(`\u001b[${drawn}A\r\u001b[J`)
    drawn = 0
  }
  const draw = (): void => {
    clear()
    const { rows = SIZE.rows } = error as typeof error & { rows?: number }
    const lines = drawChoices(list, title, { columns: error.columns ?? SIZE.columns, rows })
    error.write(lines.map(line => `${line}\r\n`).join(''))
    drawn = lines.length
  }

  return new Promise(resolve => {
    const end = (chosen: ReadonlySet<number> | undefined): void => {
      input.off('keypress', onKey)
      input.off('end', leave)
      stopInterrupts()
      raw.setRawMode?.(false)
      input.pause()
      clear()
      resolve(chosen)
    }
    const leave = (): void => end(undefined)
    const onKey = (text: string | undefined, key: Omit<PressedKey, 'text'> | undefined): void => {
      const next = stepChoices(list, { ...key, text })
      if (next === 'done') return end(list.chosen)
      if (next === 'cancelled') return leave()
      list = next
      draw()
    }
    const stopInterrupts = terminal.onInterrupt(leave)
    emitKeypressEvents(input)
    raw.setRawMode?.(true)
    input.on('keypress', onKey)
    input.on('end', leave)
    input.resume()
    draw()
  })
}
