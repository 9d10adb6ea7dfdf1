import { beforeAll, describe, expect, test } from 'vitest'
import { type Cell, type CellResult, runCell, titleOf } from './cell.ts'

/** Installing takes longest, once; after that a run takes seconds. */
const CELL_MS = 600_000

/** One test for every check of the quick cells; a cell that cannot run on this machine says why and is skipped. */
export const describeCells = (cells: readonly Cell[]): void => {
  for (const cell of cells.filter(({ isQuick }) => isQuick)) describeCell(cell)
}

const told = new Set<string>()

const describeCell = (cell: Cell): void => {
  describe(titleOf(cell), () => {
    let result: CellResult
    beforeAll(async () => {
      result = await runCell(cell)
      if (result.kind === 'ran' || told.has(result.reason)) return
      told.add(result.reason)
      process.stderr.write(`skipped: ${result.reason}\n`)
    }, CELL_MS)

    test.for(cell.checks)('%s', (check, { skip }) => {
      if (result.kind === 'skipped') return skip(result.reason)
      expect(result.outcomes.find(outcome => outcome.check === check)).toMatchObject({ check, ok: true })
    })
  })
}
