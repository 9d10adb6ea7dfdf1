import type { SseEvent } from '../../wire/sse.ts'
import type { FailureDetails } from '../failures.ts'
import { type Redirect, targetOf } from '../http/redirect.ts'

/** Where messages are to be posted, as far as an event at the beginning of a channel says. */
export type EndpointClue =
  | { readonly kind: 'none' } // nothing: wait for the next event
  | { readonly kind: 'named'; readonly endpoint: Redirect }
  | { readonly kind: 'same' } // to the URL of the channel itself
  | { readonly kind: 'invalid'; readonly failure: FailureDetails }

const NONE: EndpointClue = { kind: 'none' }
const SAME: EndpointClue = { kind: 'same' }

/** Reads an event of a channel whose endpoint is not known yet. `from` is the URL of the channel. */
export const readEndpoint = ({ event, data }: SseEvent, from: Redirect, mayCross: boolean): EndpointClue => {
  const text = data.toString().trim()
  if (text === '' || event === 'ping') return NONE
  if (event === 'endpoint' || (event === 'message' && isAddress(text))) return resolveEndpoint(text, from, mayCross)
  if (event === 'error') return invalid('reported an error instead of the endpoint of its channel')
  return SAME
}

/** Some servers write the endpoint as their first `data:` line, without naming the event. */
const isAddress = (text: string): boolean => /^[^\s{["]*[/?][^\s]*$/.test(text)

const resolveEndpoint = (text: string, from: Redirect, mayCross: boolean): EndpointClue => {
  const base = new URL(from.target.path, from.target.origin)
  const url = URL.canParse(text, base.href) ? new URL(text, base) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return invalid('named an endpoint that is no HTTP URL')
  const target = { origin: base.origin, path: url.pathname + url.search }
  if (isSameServer(url, base)) return { kind: 'named', endpoint: { target, keepsSecrets: from.keepsSecrets } }
  if (mayCross) return { kind: 'named', endpoint: { target: targetOf(url.href), keepsSecrets: false } }
  return invalid(
    `named an endpoint on another origin (${url.origin}): if that is right, set "allowCrossOriginEndpoint": true for it`,
  )
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]', '0.0.0.0'])

/**
 * The same origin, or another name of it: a server may know its machine by another name, or not know of the TLS in
 * front of it. Its path is used then, with the origin of the channel.
 */
const isSameServer = (url: URL, base: URL): boolean => {
  if (url.origin === base.origin) return true
  const isSameHost = url.hostname === base.hostname || (LOOPBACK.has(url.hostname) && LOOPBACK.has(base.hostname))
  return isSameHost && url.port === base.port && (url.protocol === base.protocol || base.protocol === 'https:')
}

const invalid = (text: string): EndpointClue => ({ kind: 'invalid', failure: { reason: 'upstream_protocol', text } })
