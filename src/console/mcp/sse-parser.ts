/** An event of a stream of server-sent events. */
export interface SseEvent {
  readonly event: string // `message` unless the stream names another
  readonly data: string
  readonly id: string | undefined
}

/** Where to go on after a stream has ended. */
export interface StreamPosition {
  lastId?: string // of the last event that was read completely
  retryMs?: number // how long the server asks its client to wait
}

/** Reads events from pieces of text, wherever these are cut. Comments and events without data are left out. */
export const createSseParser = (
  onEvent: (event: SseEvent) => void,
  position: StreamPosition = {},
): ((piece: string) => void) => {
  let line: string[] = [] // pieces of the line that has no end yet: joined once, so that a long line stays cheap
  let isAfterReturn = false
  let [event, id] = ['', undefined as string | undefined]
  let data: string[] = []

  const finish = (): void => {
    if (id !== undefined) position.lastId = id
    if (data.length > 0) onEvent({ event: event || 'message', data: data.join('\n'), id })
    event = ''
    data = []
  }
  const take = (text: string): void => {
    if (text === '') return finish()
    const colon = text.indexOf(':')
    if (colon === 0) return
    const [field, rest] = colon < 0 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)]
    const value = rest.startsWith(' ') ? rest.slice(1) : rest
    if (field === 'data') data.push(value)
    else if (field === 'event') event = value
    else if (field === 'retry' && /^\d{1,9}$/.test(value)) position.retryMs = Number(value)
    else if (field === 'id' && !value.includes('\0')) id = value
  }

  return piece => {
    let from = isAfterReturn && piece.startsWith('\n') ? 1 : 0
    isAfterReturn = false
    for (;;) {
      const end = endOfLine(piece, from)
      if (end < 0) break
      line.push(piece.slice(from, end))
      take(line.join(''))
      line = []
      const isReturn = piece[end] === '\r'
      from = end + (isReturn && piece[end + 1] === '\n' ? 2 : 1)
      isAfterReturn = isReturn && from === piece.length
    }
    if (from < piece.length) line.push(piece.slice(from))
  }
}

const endOfLine = (text: string, from: number): number => {
  const feed = text.indexOf('\n', from)
  const before = feed < 0 ? text : text.slice(from, feed)
  const back = feed < 0 ? text.indexOf('\r', from) : before.indexOf('\r')
  if (back < 0) return feed
  return feed < 0 ? back : from + back
}
