import type { Caller } from './exchange.ts'

/** The caller for something that outlives its request, without the body of that request. */
export const compactCaller = (caller: Caller): Caller => ({
  ...caller,
  capabilities: caller.capabilities.compact(),
  info: caller.info?.compact(),
})
