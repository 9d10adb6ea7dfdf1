import { devNull } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    env: { DRAGOMAN_DATA: join(devNull, 'each-test-makes-its-own') }, // never the data directory of whoever runs them
    maxWorkers: 3, // most tests wait for sockets and processes, also on two cores
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
})
