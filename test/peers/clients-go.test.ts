import { afterAll } from 'vitest'
import { clientCells } from './clients.ts'
import { describeCells } from './describe-cells.ts'

const { cells, stop } = clientCells('Go SDK')
afterAll(stop, 30_000)
describeCells(cells)
