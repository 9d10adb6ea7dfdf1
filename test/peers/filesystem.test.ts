import { afterAll } from 'vitest'
import { describeCells } from './describe-cells.ts'
import { filesystemCells } from './filesystem.ts'

const { cells, stop } = filesystemCells()
afterAll(stop, 30_000)
describeCells(cells)
