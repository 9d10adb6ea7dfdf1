import { afterAll } from 'vitest'
import { clientCells } from './clients.ts'
import { describeCells } from './describe-cells.ts'

const { cells, stop } = clientCells('Python mcp')
afterAll(stop, 30_000)
describeCells(cells)
