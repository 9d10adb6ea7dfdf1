import type { ClientContext } from './client.ts'

/** What happens to the streams of an SDK client, which tells no one. */
export interface StreamEvents {
  /** The stream of that call broke off before an event id: no SDK can resume it. */
  onCallLost?(number: number): void
  /** The answer to a question did not arrive: no SDK sends it again, so the call that asked waits in vain. */
  onAnswerLost?(): void
  /** A stream opened with GET has begun, or has ended. */
  onStream?(isOpen: boolean): void
}

interface PostedMessage {
  readonly method?: string
  readonly params?: { readonly arguments?: { readonly number?: number } }
}

const postedMessage = (body: unknown): PostedMessage | undefined =>
  typeof body === 'string' ? JSON.parse(body) : undefined

/** Reads a copy of a stream to its end: whether it was cut, and whether an event id came first. */
const watchStream = async (body: ReadableStream<Uint8Array>): Promise<{ isCut: boolean; hasId: boolean }> => {
  const decoder = new TextDecoder()
  let hasId = false
  try {
    for await (const chunk of body) hasId ||= /^id:/m.test(decoder.decode(chunk, { stream: true }))
    return { isCut: false, hasId }
  } catch {
    return { isCut: true, hasId }
  }
}

/** A fetch that counts lost sessions and follows streams. */
export const watchedFetch =
  (
    { ledger, name }: ClientContext,
    { onCallLost, onAnswerLost, onStream }: StreamEvents = {},
    onSessionLost = () => {},
  ): typeof fetch =>
  async (input, init) => {
    const method = init?.method ?? 'GET'
    const posted = method === 'POST' ? postedMessage(init?.body) : undefined
    const isAnswer = posted !== undefined && posted.method === undefined
    const response = await fetch(input, init).catch((error: unknown) => {
      if (isAnswer) onAnswerLost?.()
      throw error
    })
    if (isAnswer && !response.ok) onAnswerLost?.()
    const session = new Headers(init?.headers).get('mcp-session-id')
    if (response.status === 404 && method !== 'DELETE' && session !== null) {
      ledger.sessionLost(name, session)
      onSessionLost()
    }
    const isStream = response.ok && response.headers.get('content-type')?.includes('event-stream')
    const copy = isStream ? response.clone().body : null
    if (!copy) return response
    if (method === 'GET') onStream?.(true)
    void watchStream(copy).then(({ isCut, hasId }) => {
      const number = posted?.params?.arguments?.number
      if (method === 'GET') onStream?.(false)
      else if (isCut && !hasId && number !== undefined) onCallLost?.(number)
    })
    return response
  }
