import type { Upstream } from '../protocol/exchange.ts'
import { DISCONNECTED, UpstreamFailure } from '../upstreams/failures.ts'

/** A built-in server whose modules are loaded when it is opened first: most gateways have none of them. */
export const loadWhenOpened = (name: string, load: () => Promise<Upstream>): Upstream => {
  let loading: Promise<Upstream> | undefined
  let isClosed = false

  /** After a failure the next caller tries again. */
  const start = (): Promise<Upstream> => {
    const started = load()
    started.catch(() => {
      loading = undefined
    })
    return started
  }
  return {
    open: async (...args) => {
      if (isClosed) throw new UpstreamFailure(name, DISCONNECTED)
      loading ??= start()
      return (await loading).open(...args)
    },
    close: async () => {
      isClosed = true
      const upstream = await loading?.catch(() => undefined)
      await upstream?.close()
    },
  }
}
