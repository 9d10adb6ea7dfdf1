import { devNull } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

const LONG = '**/*.long.test.ts'
const PEERS = 'test/peers/**/*.test.ts'
const STORE = 'src/servers/memory/store/**/*.test.ts'

export default defineConfig({
  test: {
    env: { DRAGOMAN_DATA: join(devNull, 'each-test-makes-its-own') }, // never the user's own data directory
    maxWorkers: 3, // most tests wait for sockets and processes, also on two cores
    isolate: false, // importing the gateway again for each file took over half of the time
    testTimeout: 20_000,
    hookTimeout: 20_000,
    projects: [
      { extends: true, test: { name: 'unit', include: ['src/**/*.test.ts'], exclude: [STORE] } },
      { extends: true, test: { name: 'store', include: [STORE], globalSetup: 'test/support/postgres-setup.ts' } },
      { extends: true, test: { name: 'gateway', include: ['test/**/*.test.ts'], exclude: [PEERS, LONG] } },
      { extends: true, test: { name: 'long', include: [`test/${LONG}`] } }, // long forms: npm run test:long
      { extends: true, test: { name: 'peers', include: [PEERS] } }, // clients and servers in other languages: npm run test:peers
    ],
  },
})
