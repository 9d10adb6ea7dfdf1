import { type LookupAddress, lookup } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { isOwnAddress, isPrivateAddress } from './address.ts'
import { ADDRESS_REFUSED } from './http-failures.ts'

/**
 * Which addresses a request may connect to. The configuration may name any address. A redirect or an endpoint on another
 * origin never leads to the gateway's own port (`elsewhere`), and from a public server to public addresses only (`public`).
 */
export type AddressScope = 'configured' | 'elsewhere' | 'public'

/** A connection that a server asked for and the gateway does not open. */
class AddressRefused extends Error {
  readonly code = ADDRESS_REFUSED
}

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
}

/** Pools of connections, one per address scope; records which origins have a public address. */
export class Connections {
  readonly #options: ConnectionOptions
  readonly #agents = new Map<AddressScope, Agent>()
  readonly #streamAgents = new Map<AddressScope, Agent>()
  readonly #publicOrigins = new Set<string>()

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  /** Long-lived streams have a pool of their own: for each request a pool looks through all its busy connections. */
  agent(scope: AddressScope, isStream: boolean): Agent {
    const agents = isStream ? this.#streamAgents : this.#agents
    const known = agents.get(scope)
    if (known) return known
    const agent = this.#create(scope)
    agents.set(scope, agent)
    return agent
  }

  /** The scope of a redirect by a server at that origin. */
  scopeAfter(origin: string): AddressScope {
    return this.#publicOrigins.has(origin) ? 'public' : 'elsewhere'
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#agents.values(), ...this.#streamAgents.values()].map(agent => agent.destroy()))
  }

  #create(scope: AddressScope): Agent {
    const { connectMs, tls } = this.#options
    const connect = buildConnector({ timeout: connectMs, lookup: this.#lookup(scope), ...tls })
    const guarded: buildConnector.connector = (options, callback) => {
      const host = options.hostname.replace(/^\[(.*)\]$/, '$1')
      const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80)
      const early = isIP(host) > 0 ? this.#refusal(scope, host, port) : undefined // an IP address is not looked up
      if (early) return callback(early, null)
      connect(options, (...[error, socket]) => {
        if (error) return callback(error, null)
        const refusal = this.#refusal(scope, socket.remoteAddress ?? '', port)
        if (!refusal) this.#recordOrigin(`${options.protocol}//${options.host ?? host}`, socket)
        else socket.destroy()
        if (refusal) callback(refusal, null)
        else callback(null, socket)
      })
    }
    // The gateway has timeouts of its own (Deadlines), so undici needs no timers for them.
    return new Agent({ connect: guarded, headersTimeout: 0, bodyTimeout: 0 })
  }

  #recordOrigin(origin: string, { remoteAddress }: Socket): void {
    if (remoteAddress !== undefined && !this.#isPrivate(remoteAddress)) this.#publicOrigins.add(origin)
  }

  #lookup(scope: AddressScope): LookupFunction {
    return (hostname, options, callback) =>
      lookup(hostname, { ...options, all: true }, (error, found) => {
        if (error) return callback(error, '')
        const refused = found.map(({ address }) => this.#refusal(scope, address)).find(refusal => refusal)
        if (refused) return callback(refused, '')
        const [first] = found as [LookupAddress]
        if (options.all) callback(null, found)
        else callback(null, first.address, first.family)
      })
  }

  #isPrivate(address: string): boolean {
    return (this.#options.isPrivate ?? isPrivateAddress)(address)
  }

  #refusal(scope: AddressScope, address: string, port?: number): AddressRefused | undefined {
    if (scope === 'configured') return undefined
    if (scope === 'public' && this.#isPrivate(address))
      return new AddressRefused(
        `redirected from a public server to the private address ${address}, which the gateway does not allow`,
      )
    const isSelf = port !== undefined && port === this.#options.ownPort?.() && isOwnAddress(address)
    return isSelf ? new AddressRefused('pointed to the address of this gateway itself') : undefined
  }
}
