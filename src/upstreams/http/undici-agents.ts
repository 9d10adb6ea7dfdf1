import { Agent } from 'undici'
import type { GuardedConnectorOptions } from '../../std/guarded-connector.ts'
import { buildGuardedConnector } from '../../std/undici-connector.ts'
import type { AddressScope } from './connections.ts'
import type { DispatchedRequest, DispatchHandler } from './dispatch.ts'

/** Sends requests by undici, over pools of connections: two for each address scope. */
export class UndiciAgents {
  readonly #guardOf: (scope: AddressScope) => GuardedConnectorOptions
  readonly #calls = new Map<AddressScope, Agent>()
  readonly #streams = new Map<AddressScope, Agent>() // long-lived: for each request undici looks through all its busy connections

  constructor(guardOf: (scope: AddressScope) => GuardedConnectorOptions) {
    this.#guardOf = guardOf
  }

  dispatch(request: DispatchedRequest, scope: AddressScope, isStream: boolean, handler: DispatchHandler): void {
    const body = typeof request.body === 'string' ? Buffer.from(request.body, 'latin1') : request.body
    // undici does not change the list, though its types allow it.
    this.#agent(scope, isStream).dispatch({ ...request, body, headers: request.headers as string[] }, handler)
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#calls.values(), ...this.#streams.values()].map(agent => agent.destroy()))
  }

  #agent(scope: AddressScope, isStream: boolean): Agent {
    const agents = isStream ? this.#streams : this.#calls
    const known = agents.get(scope)
    if (known) return known
    const connect = buildGuardedConnector(this.#guardOf(scope))
    // The gateway has timeouts of its own (Deadlines), so undici needs no timers for them.
    const agent = new Agent({ connect, headersTimeout: 0, bodyTimeout: 0 })
    agents.set(scope, agent)
    return agent
  }
}
