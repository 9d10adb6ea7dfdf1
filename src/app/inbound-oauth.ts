import { createGuardedFetch } from '../auth/fetch/guarded-fetch.ts'
import { createProtectedResource } from '../auth/resource.ts'
import { createVerifier } from '../auth/verify/verifier.ts'
import { acceptsOAuth, type Snapshot } from '../config/snapshot.ts'
import type { Log } from '../telemetry/log.ts'

interface InboundOAuthOptions {
  readonly port: () => number | undefined // where the gateway listens
  readonly log: Log
}

/** What accepting OAuth tokens of clients needs; undefined if the configuration accepts none. */
export const createInboundOAuth = (
  { auth = {}, listen }: Pick<Snapshot, 'auth' | 'listen'>,
  { port, log }: InboundOAuthOptions,
) => {
  if (!acceptsOAuth(auth)) return undefined
  const { fetch, close } = createGuardedFetch({ ownPort: port })
  return {
    resource: createProtectedResource({ auth, listen, port }),
    verifier: createVerifier({ issuers: auth.issuers ?? new Map(), fetch, log }),
    close,
  }
}
