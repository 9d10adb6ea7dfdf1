import { spawn } from 'node:child_process'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createRecording, type Recorded, type Recording } from './recording.ts'

const RELAY = fileURLToPath(new URL('../../matrix/relay.mjs', import.meta.url))

/** A server that is started by its arguments to Node; what the gateway starts is a relay to it that is listened to. */
export const recordStdio = async (args: readonly string[]): Promise<Recorded> => {
  const { note, ...recording } = createRecording()
  const sockets = new Set<Socket>()
  let started = 0
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    run(args, socket, `process ${++started}`, note)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    ...recording,
    entry: { command: process.execPath, args: [RELAY, String(port)] },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

const run = (args: readonly string[], socket: Socket, session: string, note: Recording['note']): void => {
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'], env: { PATH: process.env.PATH } })
  createInterface({ input: socket }).on('line', line => {
    note(session, line)
    child.stdin.write(`${line}\n`)
  })
  child.stdin.on('error', () => undefined)
  child.stdout.pipe(socket)
  child.on('exit', () => socket.destroy())
  socket.on('error', () => undefined)
  socket.on('close', () => child.kill('SIGKILL'))
}
