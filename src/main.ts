#!/usr/bin/env node
import { run } from './cli/run.ts'

const LINGER_MS = 1000

// Whoever read our output may leave before us; that is no reason to fall.
process.stdout.on('error', () => {})

process.exitCode = await run(process.argv.slice(2), {
  startGateway: async (snapshot, options) => (await import('./gateway.ts')).startGateway(snapshot, options),
  servePipe: async options => (await import('./pipe.ts')).servePipe(options),
})

// Everything is closed by now; a handle somebody forgot must not keep the process.
setTimeout(() => process.exit(), LINGER_MS).unref()
