import { effect, signal } from '@preact/signals'
import { gatewayUrl } from './api.ts'
import { loadSession, session } from './session.ts'

/** The kinds of events of `GET /admin/events`. */
export type FeedKind = (typeof FEED_KINDS)[number]
const FEED_KINDS = ['status', 'log', 'recording', 'config', 'tokens', 'logins', 'dropped'] as const

/** `off`: no page listens, or the tab is hidden. */
export type FeedState = 'off' | 'connecting' | 'live' | 'broken'

type FeedListener = (data: unknown) => void

const PATH = 'admin/events'
const RETRY_MS = 2000
const HIDDEN_MS = 10_000 // a browser has six connections to an origin: a hidden tab gives its own back

/** The state of the connection that brings events. */
export const feedState = signal<FeedState>('off')

const listeners = new Map<FeedKind, Set<FeedListener>>()
const count = signal(0)

/** Calls `listener` with each event of a kind; the function that it returns ends that. */
export const onFeed = (kind: FeedKind, listener: FeedListener): (() => void) => {
  const set = listeners.get(kind) ?? new Set()
  listeners.set(kind, set.add(listener))
  count.value++
  return () => {
    if (set.delete(listener)) count.value--
  }
}

const dispatch = (kind: FeedKind, { data }: MessageEvent<string>): void => {
  const parsed: unknown = JSON.parse(data)
  for (const listener of listeners.get(kind) ?? []) listener(parsed)
}

/** Keeps the connection while a page listens, the tab is shown and the user may look. */
export const startFeed = (): void => {
  const isHidden = signal(document.hidden)
  let hiding: ReturnType<typeof setTimeout> | undefined
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiding)
    if (document.hidden)
      hiding = setTimeout(() => {
        isHidden.value = true
      }, HIDDEN_MS)
    else isHidden.value = false
  })
  const attempt = signal(0)

  effect(() => {
    const mayRead = session.value !== undefined && session.value.role !== 'none'
    void attempt.value
    if (!mayRead || isHidden.value || count.value === 0) {
      feedState.value = 'off'
      return
    }
    return connect(() => {
      attempt.value++
    })
  })
}

/** Opens the feed; `again` is called some time after the gateway has ended it. */
const connect = (again: () => void): (() => void) => {
  const source = new EventSource(gatewayUrl(PATH))
  let retry: ReturnType<typeof setTimeout> | undefined
  feedState.value = 'connecting'
  source.onopen = () => {
    feedState.value = 'live'
  }
  source.onerror = () => {
    feedState.value = 'broken'
    if (source.readyState !== EventSource.CLOSED) return // the browser connects again
    retry = setTimeout(() => void loadSession().then(again, again), RETRY_MS) // the session may have ended
  }
  for (const kind of FEED_KINDS) source.addEventListener(kind, event => dispatch(kind, event as MessageEvent<string>))
  return () => {
    clearTimeout(retry)
    source.close()
  }
}
