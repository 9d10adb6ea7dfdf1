// The process: runs a command, and gives it the parts of the gateway that it may need.
import { run } from './cli/run.ts'

const LINGER_MS = 1000

const main = async (): Promise<void> => {
  // The reader of the output may close its end first: that must not crash the process.
  process.stdout.on('error', () => {})
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
}

void main()
