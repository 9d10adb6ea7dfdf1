import type { IncomingHttpHeaders } from 'node:http'
import { Json } from '../wire/json/json.ts'
import { JsonSyntaxError } from '../wire/json/scan.ts'
import type { Deviations } from './deviations.ts'
import { HttpFailure, sendHttp } from './http-send.ts'
import type { AuthenticationFinding } from './report.ts'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'
const METADATA = /resource_metadata\s*=\s*"?([^",\s]+)/i

/** Finds out what a server demands that answered 401 or 403; sends no credentials. */
export const examineAuthentication = async (
  url: URL,
  { status, headers }: { readonly status: number; readonly headers: IncomingHttpHeaders },
  timeoutMs: number,
  deviations: Deviations,
): Promise<AuthenticationFinding> => {
  const challenge = headers['www-authenticate']
  if (status === 401 && challenge === undefined) deviations.add('challenge', 'HTTP', 'the 401 response has none')
  const named = METADATA.exec(challenge ?? '')?.[1]
  for (const address of metadataAddresses(url, named)) {
    const metadata = await readMetadata(address, timeoutMs)
    if (!metadata) continue
    const texts = (key: string): string[] | undefined =>
      metadata
        .get(key)
        ?.elements()
        .flatMap(text => text.asString() ?? [])
    return {
      status,
      challenge,
      metadata: address.href,
      authorizationServers: texts('authorization_servers'),
      scopes: texts('scopes_supported'),
    }
  }
  if (named !== undefined) deviations.add('resource-metadata', 'HTTP', `${named} has no metadata`)
  return { status, challenge }
}

/** Where the metadata may be: named in the challenge, else beside the server, else at the root. */
const metadataAddresses = (url: URL, named: string | undefined): URL[] => {
  if (named !== undefined) return URL.canParse(named, url.href) ? [new URL(named, url)] : []
  const path = url.pathname === '/' ? '' : url.pathname
  return [...new Set([`${WELL_KNOWN}${path}`, WELL_KNOWN])].map(place => new URL(place, url))
}

const readMetadata = async (address: URL, timeoutMs: number): Promise<Json | undefined> => {
  try {
    const { status, body } = await sendHttp(address, timeoutMs, {
      method: 'GET',
      headers: { accept: 'application/json' },
    })
    const json = status === 200 ? Json.parse(body) : undefined
    return json?.has('authorization_servers') || json?.has('resource') ? json : undefined
  } catch (error) {
    if (error instanceof HttpFailure || error instanceof JsonSyntaxError) return undefined
    throw error
  }
}
