#!/usr/bin/env node
import module from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'

const LINGER_MS = 1000

// With many pending calls V8 would allocate their objects in the old generation from then on: a fifth more CPU.
setFlagsFromString('--no-allocation-site-pretenuring')
// By default V8 stops inlining early, in the middle of the loop that checks JSON: 8 % of the CPU of a call with 10 KB.
setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000')

// The reader of the output may close its end first: that must not crash the process.
process.stdout.on('error', () => {})

// Node.js 22.1 and newer can keep compiled code between starts. Its own folder for that is one that other users may write to.
const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => unknown }
enableCompileCache?.(join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'dragoman', 'compiled'))

const { run } = await import('./cli/run.ts') // compiled after that
process.exitCode = await run(process.argv.slice(2), {
  startGateway: async (snapshot, options) => (await import('./app/gateway.ts')).startGateway(snapshot, options),
  inspect: async (snapshot, options) => (await import('./app/check.ts')).checkServers(snapshot, options),
  openServer: async (server, options) => (await import('./app/client-server.ts')).openServer(server, options),
  openDaemon: async (daemon, workspace, asks) =>
    (await import('./app/client-daemon.ts')).openDaemon(daemon, workspace, asks),
  openMemory: async options => (await import('./servers/memory/memory-admin.ts')).openMemoryAdmin(options),
  servePipe: async options => (await import('./app/stdio-proxy.ts')).serveStdioProxy(options),
})

// Everything is closed by now: an open handle must not keep the process alive.
setTimeout(() => process.exit(), LINGER_MS).unref()
