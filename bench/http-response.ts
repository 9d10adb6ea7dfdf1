/** One HTTP/1.1 response as read off a socket. */
export interface HttpResponse {
  readonly status: number
  readonly head: string // status line and headers
  readonly body: Buffer
}

const HEAD_END = '\r\n\r\n'

const readChunks = (buffer: Buffer, start: number): Buffer | undefined => {
  const pieces: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = buffer.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(buffer.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + size
    if (buffer.length < end + 2) return undefined
    if (size === 0) return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)
    pieces.push(buffer.subarray(lineEnd + 2, end))
    at = end + 2
  }
}

/** The response these bytes hold, or undefined while it is incomplete. One call at a time, so nothing follows it. */
export const readResponse = (buffer: Buffer): HttpResponse | undefined => {
  const headEnd = buffer.indexOf(HEAD_END)
  if (headEnd < 0) return undefined
  const head = buffer.toString('latin1', 0, headEnd)
  const status = Number(head.slice(9, 12))
  const start = headEnd + HEAD_END.length
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) {
    const end = start + Number(length)
    return buffer.length < end ? undefined : { status, head, body: buffer.subarray(start, end) }
  }
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return { status, head, body: Buffer.alloc(0) }
  const body = readChunks(buffer, start)
  return body && { status, head, body }
}

/** The value of a header. */
export const headerOf = (response: HttpResponse, name: string): string | undefined =>
  new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i').exec(response.head)?.[1]
