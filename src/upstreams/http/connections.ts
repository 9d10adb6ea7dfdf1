import type { Socket } from 'node:net'
import { isOwnAddress, isPrivateAddress } from '../../std/address.ts'
import {
  AddressRefused,
  buildGuardedSocketConnector,
  type Destination,
  type GuardedConnectorOptions,
} from '../../std/guarded-connector.ts'
import { ConnectionsClosed, type DispatchedRequest, type DispatchHandler, NO_CONTROLLER } from './dispatch.ts'
import { PlainPool } from './plain-pool.ts'
import { PlainRequest } from './plain-request.ts'
import type { UndiciAgents } from './undici-agents.ts'

/**
 * Which addresses a request may connect to. The configuration may name any address. A redirect or an endpoint on another
 * origin never leads to the gateway's own port (`elsewhere`), and from a public server to public addresses only (`public`).
 */
export type AddressScope = 'configured' | 'elsewhere' | 'public'

/** PEM texts. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
  readonly ca: string // that the server's certificate must be signed by
}

export interface ConnectionOptions {
  readonly connectMs: number
  readonly tls?: ClientCertificate | undefined // shown to the server
  readonly ownPort?: (() => number | undefined) | undefined // where the gateway listens
  readonly isPrivate?: ((address: string) => boolean) | undefined // tests have no public addresses
  readonly usesUndiciOnly?: boolean | undefined // tests compare both clients
}

const UNDICI_ONLY = process.env.DRAGOMAN_UPSTREAM_HTTP === 'undici' // for tests and measurements of the whole program

/**
 * Sends requests over pools of connections, one for each address scope; records which origins have a public address.
 * Plain requests to `http:` go over connections of our own, which make a small call cost about a seventh less CPU; everything else over undici.
 */
export class Connections {
  readonly #options: ConnectionOptions
  readonly #usesUndiciOnly: boolean
  readonly #pools = new Map<AddressScope, Map<string, PlainPool>>() // by origin
  readonly #publicOrigins = new Set<string>()
  #undici: UndiciAgents | undefined // once a request has needed it
  #isClosed = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#usesUndiciOnly = options.usesUndiciOnly ?? UNDICI_ONLY
  }

  dispatch(request: DispatchedRequest, scope: AddressScope, isStream: boolean, handler: DispatchHandler): void {
    if (this.#isClosed) return handler.onResponseError(NO_CONTROLLER, new ConnectionsClosed())
    const pool = this.#poolOf(scope, request.origin)
    const plain = pool && PlainRequest.of(request, pool.heads, handler)
    if (plain) return pool.send(plain)
    if (this.#undici) return this.#undici.dispatch(request, scope, isStream, handler)
    this.#loadUndici().then(
      undici => undici.dispatch(request, scope, isStream, handler),
      error => handler.onResponseError(NO_CONTROLLER, error),
    )
  }

  /** It takes 60 ms of CPU to load, which a gateway without TLS need not spend. */
  async #loadUndici(): Promise<UndiciAgents> {
    const { UndiciAgents: Agents } = await import('./undici-agents.ts')
    if (this.#isClosed) throw new ConnectionsClosed()
    this.#undici ??= new Agents(scope => this.#guard(scope))
    return this.#undici
  }

  #poolOf(scope: AddressScope, origin: string): PlainPool | undefined {
    if (this.#usesUndiciOnly || !origin.startsWith('http:')) return undefined
    let pools = this.#pools.get(scope)
    if (!pools) {
      pools = new Map()
      this.#pools.set(scope, pools)
    }
    let pool = pools.get(origin)
    if (!pool) {
      pool = new PlainPool(origin, buildGuardedSocketConnector(this.#guard(scope)), () => pools.delete(origin))
      pools.set(origin, pool)
    }
    return pool
  }

  /** The scope of a redirect by a server at that origin. */
  scopeAfter(origin: string): AddressScope {
    return this.#publicOrigins.has(origin) ? 'public' : 'elsewhere'
  }

  async destroy(): Promise<void> {
    this.#isClosed = true
    const pools = [...this.#pools.values()].flatMap(each => [...each.values()])
    await Promise.all([this.#undici, ...pools].map(each => each?.destroy()))
  }

  #guard(scope: AddressScope): GuardedConnectorOptions {
    const { connectMs, tls } = this.#options
    return {
      connectMs,
      tls,
      refusalOf: (to: Destination) => this.#refusal(scope, to),
      onConnected: (origin: string, { remoteAddress }: Socket) => {
        if (remoteAddress !== undefined && !this.#isPrivate(remoteAddress)) this.#publicOrigins.add(origin)
      },
    }
  }

  #isPrivate(address: string): boolean {
    return (this.#options.isPrivate ?? isPrivateAddress)(address)
  }

  #refusal(scope: AddressScope, { address, port }: Destination): AddressRefused | undefined {
    if (scope === 'configured') return undefined
    if (scope === 'public' && this.#isPrivate(address))
      return new AddressRefused(
        `redirected from a public server to the private address ${address}, which the gateway does not allow`,
      )
    const isSelf = port !== undefined && port === this.#options.ownPort?.() && isOwnAddress(address)
    return isSelf ? new AddressRefused('pointed to the address of this gateway itself') : undefined
  }
}
