import { BoundedCache } from '../../std/bounded-cache.ts'
import { sealBytes, unsealBytes } from '../../wire/seal.ts'

/** The header in which a replica tells another one whose request it forwards. Only the cluster port reads it. */
export const CALLER_HEADER = 'dragoman-caller'

/** A caller as the replica that was called has admitted it. */
export interface ForwardedCaller {
  readonly workspace: string
  readonly principal: string | undefined
  readonly policyName: string | undefined // of the token; each replica has the policy in its configuration
  readonly address: string | undefined // of the client
  readonly scopes?: ReadonlySet<string> | undefined // of the token; undefined: all
  readonly expires?: number | undefined // of the token
  readonly token?: string | undefined // its id: what is opened with it ends with it
}

/** What a sealed caller says, or why it is not accepted. `expired`: the clocks of the two replicas may differ. */
export type CallerReading =
  | { readonly kind: 'valid'; readonly caller: ForwardedCaller }
  | { readonly kind: 'misdirected' } // meant for another replica
  | { readonly kind: 'expired' }
  | { readonly kind: 'invalid' } // forged, damaged, or of another cluster

type SealedCaller = readonly [
  to: string,
  expires: number,
  workspace: string,
  principal: string | null,
  policyName: string | null,
  address: string | null,
  scopes: readonly string[] | null,
  tokenExpires: number | null,
  token?: string | null, // absent in older versions
]

interface OpenedCaller {
  readonly to: string
  readonly expires: number
  readonly caller: ForwardedCaller
}

const VALID_MS = 10_000
const RENEW_MS = 5_000 // so that half of the validity is left for the way
const TOLERANCE_MS = 1_000 // between the clocks of two replicas
const CACHED = 10_000
const PURPOSE = 'caller'
const LONGEST = 32 * 1024 // characters

/** Seals callers for other replicas, and opens what they sealed. Both are cached: a busy client sends the same one often. */
export class CallerSeal {
  readonly #keys: readonly Uint8Array[]
  readonly #sealed = new BoundedCache<{ readonly text: string; readonly renewAt: number }>(CACHED, VALID_MS)
  readonly #opened = new BoundedCache<OpenedCaller>(CACHED, VALID_MS)

  /** The first key seals, all of them open. */
  constructor(keys: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#keys = keys
  }

  /** Seals a caller for the replica `to`; `now` is the time there. */
  seal(caller: ForwardedCaller, to: string, now: number): string {
    const { workspace, principal, policyName, address, scopes, expires, token } = caller
    const held = scopes ? [...scopes] : null
    const names = [workspace, principal ?? null, policyName ?? null, address ?? null] as const
    const about = [...names, held, expires ?? null, token ?? null] as const
    const key = JSON.stringify([to, ...about])
    const known = this.#sealed.get(key)
    if (known && now < known.renewAt && now > known.renewAt - VALID_MS) return known.text
    const content: SealedCaller = [to, now + VALID_MS, ...about]
    const text = sealBytes(this.#keys[0] as Uint8Array, PURPOSE, JSON.stringify(content)).toString('base64url')
    this.#sealed.set(key, { text, renewAt: now + RENEW_MS })
    return text
  }

  /** Opens a caller that was sealed for the replica `self`. */
  open(sealed: string, self: string, now: number): CallerReading {
    const opened = this.#opened.get(sealed) ?? this.#unseal(sealed)
    if (!opened) return { kind: 'invalid' }
    if (opened.to !== self) return { kind: 'misdirected' }
    // A time too far ahead comes from another clock: such a caller would stay valid for longer than it should.
    if (opened.expires <= now || opened.expires > now + VALID_MS + TOLERANCE_MS) return { kind: 'expired' }
    return { kind: 'valid', caller: opened.caller }
  }

  #unseal(sealed: string): OpenedCaller | undefined {
    if (sealed.length > LONGEST) return undefined
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.toString('base64url') !== sealed) return undefined // Node ignores characters that are no base64url
    for (const key of this.#keys) {
      const content = unsealBytes(key, PURPOSE, bytes)
      if (!content) continue
      const [to, expires, workspace, principal, policyName, address, scopes, tokenExpires, token] = JSON.parse(
        content.toString(),
      ) as SealedCaller
      const caller = {
        workspace,
        principal: principal ?? undefined,
        policyName: policyName ?? undefined,
        address: address ?? undefined,
        scopes: scopes ? new Set(scopes) : undefined,
        expires: tokenExpires ?? undefined,
        token: token ?? undefined,
      }
      const opened = { to, expires, caller }
      this.#opened.set(sealed, opened)
      return opened
    }
    return undefined
  }
}
