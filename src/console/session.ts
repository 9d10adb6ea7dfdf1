import { computed, signal } from '@preact/signals'
import type { SessionInfo } from '../admin/api/session.ts'
import { api, csrf, hasExpired, SESSION_PATH } from './api.ts'

type Credentials = { readonly token: string } | { readonly code: string }

const TOKEN_FRESH_MS = 60_000
const RENEW_MS = 30 * 60_000

const current = signal<SessionInfo | undefined>(undefined)
let loadedAt = 0

/** Undefined until the gateway has answered. A session that has expired has the role `none`. */
export const session = computed<SessionInfo | undefined>(() =>
  current.value && hasExpired.value ? { ...current.value, role: 'none' } : current.value,
)

/** Whether this user may change things. Pages disable what needs it, and say why. */
export const isOwner = computed(() => session.value?.role === 'owner')

const accept = (next: SessionInfo): SessionInfo => {
  loadedAt = Date.now()
  csrf.value = next.csrf
  const wasSignedIn = hasExpired.peek() || (current.peek()?.role ?? 'none') !== 'none'
  hasExpired.value = next.role === 'none' && wasSignedIn
  current.value = next
  return next
}

export const loadSession = async (): Promise<SessionInfo> => accept(await api.get<SessionInfo>(SESSION_PATH))

/** Signs in with a token, or with the code of a one-time link. */
export const signIn = async (credentials: Credentials): Promise<void> => {
  await api.post(SESSION_PATH, credentials)
  await loadSession()
}

export const signOut = async (): Promise<void> => {
  await api.delete(SESSION_PATH)
  current.value = undefined // the form is not for a session that has expired
  await loadSession()
}

/** A session ends after some hours without a request: one that is looked at goes on. */
export const keepSession = (): void => {
  setInterval(() => {
    if (!document.hidden) loadSession().catch(() => {}) // the feed shows that the gateway is away
  }, RENEW_MS)
}

/** The bearer token with which the page calls /mcp; a new one where the last may have ended. */
export const mcpToken = async (): Promise<string | undefined> => {
  const isFresh = current.value && Date.now() - loadedAt < TOKEN_FRESH_MS
  return (isFresh ? current.value : await loadSession())?.mcpToken
}
