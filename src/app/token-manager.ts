import type { TokenInfo } from '../admin/api/tokens.ts'
import { AdminError } from '../admin/endpoints.ts'
import type { TokenManager } from '../admin/token-endpoints.ts'
import type { InboundAuth } from '../auth/inbound-auth.ts'
import { createToken, type TokenNames, TokenWishError } from '../auth/new-token.ts'
import { EVERY_WORKSPACE, isExpired, type Token } from '../auth/token.ts'
import { type TokenPlace, tokensInDirectory, tokensInStore } from '../auth/token-place.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Shared } from '../stores/state/state-store.ts'

interface TokenManagerOptions {
  readonly data: string | undefined // the data directory
  readonly shared: Shared | undefined // where all replicas keep their tokens; undefined: in the data directory
  readonly inbound: Pick<InboundAuth, 'storedTokens' | 'tokens'>
  readonly current: () => Pick<Snapshot, 'workspaces' | 'policies' | 'file'>
  readonly openSessions: () => number
}

const UNCHECKED =
  'This gateway admits callers without looking at tokens, because of --insecure or "auth.required": false. A token would have no effect'
const NO_PLACE = 'This gateway has no data directory, so it keeps no tokens. Start it with --data'

/** Lets the owner list, create and revoke API tokens, as `dragoman token` does. */
export const createTokenManager = (options: TokenManagerOptions): TokenManager => {
  const { inbound, current, openSessions } = options
  const { storedTokens } = inbound
  const place = placeOf(options)
  const unusable = !place ? NO_PLACE : storedTokens ? undefined : UNCHECKED

  const usablePlace = (): TokenPlace => {
    if (place && unusable === undefined) return place
    throw new AdminError(409, unusable ?? NO_PLACE)
  }

  const namesFor = (tokens: readonly Token[]): TokenNames => {
    const { workspaces, policies = new Map(), file = 'the configuration' } = current()
    return {
      workspaces: [...workspaces.keys()],
      policies: { file, names: [...policies.keys()] },
      tokens: tokens.map(({ name }) => name),
    }
  }

  return {
    list: async () => {
      const tokens = await place?.read()
      const lastUsed = (await storedTokens?.lastUsed()) ?? {}
      const { workspaces, policies = new Map() } = current()
      return {
        tokens: (tokens ?? []).map(token => describeToken(token, lastUsed[token.id])),
        isRequired: !inbound.tokens.isValid(undefined),
        isFirst: tokens === undefined,
        unusable,
        place: place?.name,
        workspaces: [...workspaces.keys()],
        policies: [...policies.keys()],
        openSessions: openSessions(),
      }
    },

    create: async wish => {
      const target = usablePlace()
      // Checked before the lock is taken, and again under it: another program may have used the name meanwhile.
      const made = wished(() => createToken(wish, namesFor([])))
      await target.change(tokens => {
        wished(() => createToken(wish, namesFor(tokens)))
        return [...tokens, made.token]
      })
      await storedTokens?.reload()
      return { token: describeToken(made.token, undefined), secret: made.secret }
    },

    revoke: async id => {
      const target = usablePlace()
      const known = await target.read()
      if (!known?.some(token => token.id === id)) return undefined
      let revoked: Token | undefined
      await target.change(tokens => {
        revoked = tokens.find(token => token.id === id)
        return tokens.filter(token => token !== revoked)
      })
      await storedTokens?.reload()
      return revoked && describeToken(revoked, undefined)
    },
  }
}

const placeOf = ({ data, shared }: TokenManagerOptions): TokenPlace | undefined => {
  if (shared) return tokensInStore(shared)
  return data === undefined ? undefined : tokensInDirectory(data)
}

const wished = <T>(run: () => T): T => {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof TokenWishError)) throw error
    throw new AdminError(422, `The ${FIELDS[error.field]}: ${error.message}`, { field: error.field })
  }
}

const FIELDS = {
  name: 'name',
  workspaces: 'workspaces',
  policy: 'policy',
  expires: 'lifetime',
  principal: 'principal',
  admin: 'role',
} as const

const describeToken = (token: Token, lastUsed: string | undefined): TokenInfo => {
  const { id, name, principal, workspaces, policy, admin = false, created, expires } = token
  const isUnlimited = workspaces.includes(EVERY_WORKSPACE) && policy === undefined
  const role = admin ? 'owner' : isUnlimited ? 'viewer' : 'none'
  return {
    ...{ id, name, principal, workspaces, policy, role, created, expires, lastUsed },
    isExpired: isExpired(token, Date.now()),
  }
}
