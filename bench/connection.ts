import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type HttpResponse, readResponse } from './http-response.ts'

/** One keep-alive socket with one call at a time on it: the cheapest client there is, so that it is never the limit. */
export class Connection {
  readonly #socket: Socket
  #received: Buffer | undefined
  #done: ((response: HttpResponse) => void) | undefined
  #fail: (error: Error) => void

  private constructor(socket: Socket, fail: (error: Error) => void) {
    this.#socket = socket
    this.#fail = fail
    socket.setNoDelay(true)
    socket.on('data', chunk => this.#read(chunk))
    socket.on('error', error => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the connection was closed')))
  }

  static async open(url: URL, fail: (error: Error) => void): Promise<Connection> {
    const socket = connect(Number(url.port), url.hostname)
    await once(socket, 'connect')
    return new Connection(socket, fail)
  }

  call(request: Buffer, done: (response: HttpResponse) => void): void {
    this.#done = done
    this.#socket.write(request)
  }

  close(): void {
    this.#fail = () => {}
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    const received = this.#received ? Buffer.concat([this.#received, chunk]) : chunk
    const response = readResponse(received)
    this.#received = response ? undefined : received
    if (!response) return
    const done = this.#done
    this.#done = undefined
    done?.(response)
  }
}
