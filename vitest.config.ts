import { devNull } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

const LONG = '**/*.long.test.ts'
const PEERS = 'test/peers/**/*.test.ts'
/** They share a PostgreSQL. */
const STORE = [
  'src/servers/memory/store/**/*.test.ts',
  'src/stores/state/postgres-*.test.ts',
  'src/auth/client/postgres-*.test.ts',
  'test/e2e/cluster/postgres-*.test.ts',
  'test/e2e/login/postgres-*.test.ts',
]

/** Of every project. The number of workers is not among them: a project's own would win against --maxWorkers. */
const SHARED = {
  env: { DRAGOMAN_DATA: join(devNull, 'each-test-makes-its-own') }, // never the user's own data directory
  setupFiles: ['test/support/after-file.ts'],
  isolate: false, // importing the gateway again for each file took over half of the time
  testTimeout: 40_000, // several times what any test needs on a quiet machine
  hookTimeout: 40_000,
}

export default defineConfig({
  test: {
    maxWorkers: 6, // most tests wait for sockets and processes, also on two cores; eight workers take as long
    projects: [
      { test: { ...SHARED, name: 'store', include: STORE, globalSetup: 'test/support/postgres-setup.ts' } },
      {
        test: {
          ...SHARED,
          name: 'main', // one project: its workers import the gateway once
          include: ['{src,test}/**/*.test.ts'],
          exclude: [...STORE, PEERS, LONG],
          globalSetup: 'test/support/chromium-setup.ts',
        },
      },
      { test: { ...SHARED, name: 'long', include: [`test/${LONG}`] } }, // long forms: npm run test:long
      { test: { ...SHARED, name: 'peers', include: [PEERS] } }, // clients and servers in other languages: npm run test:peers
    ],
  },
})
