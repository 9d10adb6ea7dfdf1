import type { SseEvent } from '../../wire/sse.ts'
import type { FailureDetails } from '../failures.ts'
import { type Redirect, targetOf } from '../http/redirect.ts'

/** What an event at the beginning of a channel says about where messages are to be posted. */
export type Clue =
  | { readonly kind: 'none' } // nothing: wait for the next
  | { readonly kind: 'there'; readonly endpoint: Redirect }
  | { readonly kind: 'here' } // to the address the channel itself has
  | { readonly kind: 'bad'; readonly loss: FailureDetails }

const NONE: Clue = { kind: 'none' }
const HERE: Clue = { kind: 'here' }

/** Reads an event of a channel whose endpoint is not known yet. `from` is where the channel is. */
export const readClue = ({ event, data }: SseEvent, from: Redirect, mayCross: boolean): Clue => {
  const text = data.toString().trim()
  if (text === '' || event === 'ping') return NONE
  if (event === 'endpoint' || (event === 'message' && isAddress(text))) return locate(text, from, mayCross)
  if (event === 'error') return bad('reported an error instead of the endpoint of its channel')
  return HERE
}

/** Some servers write the endpoint as their first `data:` line, without naming the event. */
const isAddress = (text: string): boolean => /^[^\s{["]*[/?][^\s]*$/.test(text)

const locate = (text: string, from: Redirect, mayCross: boolean): Clue => {
  const base = new URL(from.target.path, from.target.origin)
  const url = URL.canParse(text, base.href) ? new URL(text, base) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return bad('named an endpoint that is no HTTP URL')
  const path = url.pathname + url.search
  if (isOurs(url, base)) return there({ origin: base.origin, path }, from)
  if (mayCross) return there(targetOf(url.href), from)
  return bad(
    `named an endpoint on another origin (${url.origin}): if that is right, set "allowCrossOriginEndpoint": true for it`,
  )
}

const there = (target: Redirect['target'], { keepsSecrets }: Redirect): Clue => ({
  kind: 'there',
  endpoint: { target, keepsSecrets },
})

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]', '0.0.0.0'])

/**
 * The same origin, or one that means it: a server knows itself by another name of the machine it runs on, or does
 * not know of the TLS in front of it. Then what it says counts, but is sent where the channel is.
 */
const isOurs = (url: URL, base: URL): boolean => {
  if (url.origin === base.origin) return true
  const isSameHost = url.hostname === base.hostname || (LOOPBACK.has(url.hostname) && LOOPBACK.has(base.hostname))
  return isSameHost && url.port === base.port && (url.protocol === base.protocol || base.protocol === 'https:')
}

const bad = (text: string): Clue => ({ kind: 'bad', loss: { reason: 'upstream_protocol', text } })
