import type { Summary } from './statistics.ts'

/** A number with as many digits as it deserves. */
export const figure = (value: number): string =>
  value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)

/** The median, with the lowest and the highest. */
export const spread = ({ median, min, max }: Summary): string => `${figure(median)} (${figure(min)}–${figure(max)})`

const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`

export const table = (head: readonly string[], rows: readonly string[][]): string =>
  [row(head), row(head.map((_, index) => (index === 0 ? '---' : '--:'))), ...rows.map(row)].join('\n')
