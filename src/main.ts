#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'
import { run } from './cli/run.ts'

const LINGER_MS = 1000

// Many calls waiting at once teach V8 to put what calls are made of among the long-lived, for good: a fifth more CPU.
setFlagsFromString('--no-allocation-site-pretenuring')

// Whoever read our output may leave before us; that is no reason to fall.
process.stdout.on('error', () => {})

process.exitCode = await run(process.argv.slice(2), {
  startGateway: async (snapshot, options) => (await import('./app/gateway.ts')).startGateway(snapshot, options),
  inspect: async (snapshot, options) => (await import('./app/check.ts')).checkServers(snapshot, options),
  openMemory: async options => (await import('./servers/memory/memory-admin.ts')).openMemoryAdmin(options),
  servePipe: async options => (await import('./app/stdio-proxy.ts')).servePipe(options),
})

// Everything is closed by now; a handle somebody forgot must not keep the process.
setTimeout(() => process.exit(), LINGER_MS).unref()
