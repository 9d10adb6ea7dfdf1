import type { Pooled } from '../../src/upstreams/session/pool.ts'

/** A pooled session without a server. */
export class FakeSession implements Pooled {
  readonly revision = '2025-11-25'
  readonly asks = true
  readonly correlates = true
  readonly dispatch: Pooled['dispatch']
  readonly close: () => Promise<void>
  isBusy = false
  lastUsed = Date.now()

  constructor(close: () => Promise<void>, dispatch: Pooled['dispatch'] = () => {}) {
    this.close = close
    this.dispatch = dispatch
  }

  touch(): void {
    this.lastUsed = Date.now()
  }
}
