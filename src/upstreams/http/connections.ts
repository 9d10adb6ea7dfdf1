import { Agent } from 'undici'
import { isOwnAddress, isPrivateAddress } from '../../std/address.ts'
import { AddressRefused, buildGuardedConnector, type Destination } from '../../std/guarded-connector.ts'

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
    const connect = buildGuardedConnector({
      connectMs,
      tls,
      refusalOf: to => this.#refusal(scope, to),
      onConnected: (origin, { remoteAddress }) => {
        if (remoteAddress !== undefined && !this.#isPrivate(remoteAddress)) this.#publicOrigins.add(origin)
      },
    })
    // The gateway has timeouts of its own (Deadlines), so undici needs no timers for them.
    return new Agent({ connect, headersTimeout: 0, bodyTimeout: 0 })
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
