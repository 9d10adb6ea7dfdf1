import { afterAll } from 'vitest'
import { describeCells } from './describe-cells.ts'
import { pythonServerCells } from './python-servers.ts'

const { cells, stop } = pythonServerCells()
afterAll(stop, 30_000)
describeCells(cells)
