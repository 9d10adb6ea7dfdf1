// Started with `node --import` and NODE_V8_COVERAGE: SIGUSR2 writes down which functions have run until now.
import { takeCoverage } from 'node:v8'

process.on('SIGUSR2', () => takeCoverage())
