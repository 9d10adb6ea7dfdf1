import type { ServerResponse } from 'node:http'
import type { Admission, OpenerTokens, RequestInfo } from '../protocol/admission.ts'
import type { Policy } from '../protocol/policy.ts'
import { LONGEST_TIMER_MS } from '../std/time.ts'
import { type Shared, StateError } from '../stores/state/state-store.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import { LastAdmissions } from './last-admissions.ts'
import { createLastUsed } from './last-used.ts'
import { OpenResponses } from './open-responses.ts'
import {
  type AuthRejection,
  type Challenge,
  forbidden,
  invalidToken,
  missingToken,
  restrictedToken,
  uncheckedToken,
  wrongWorkspace,
} from './rejections.ts'
import { openSharedTokenStore } from './shared-tokens.ts'
import { canAccess, EVERY_WORKSPACE, expiryOf, findToken, isExpired, type Token } from './token.ts'
import { writeTokenEvents } from './token-events.ts'
import { readTokens, tokenFilePath } from './token-file.ts'
import { openTokenStore, type StoredApiTokens, type TokenStore } from './token-store.ts'

interface AuthenticatorOptions {
  readonly data: string | undefined // the data directory
  readonly shared: Shared | undefined // where all replicas keep their tokens; undefined: in the data directory
  readonly required: boolean // a token is needed even while there is none
  readonly localToken: Token // valid besides those in the data directory
  /** The token that another secret stands for, where MCP is served. */
  readonly findSubstitute: (secret: string) => Token | undefined
  readonly policyFor: PolicyFor
  readonly challenge: Challenge
  readonly recordFailure: RecordFailure
  readonly writeAudit?: WriteAuditEvent | undefined
  readonly log: Log
}

/** The tokens of the data directory or the store, while the gateway uses them. */
export interface StoredTokens {
  onChange(listener: () => void): void
  /** Reads them again: after a change by this process, what depends on them follows at once. */
  reload(): Promise<void>
  /** The time each was used last, by id. */
  lastUsed(): Promise<Readonly<Record<string, string>>>
}

/** The policy of a token, by its name; `of` is the token, or the caller, for the log. */
export type PolicyFor = (of: string, name: string) => Policy

/** Counts a rejection; returns it, or another one if its address has had too many. */
export type RecordFailure = (
  rejection: AuthRejection,
  request: RequestInfo,
  workspace: string,
  token?: string,
) => AuthRejection

export const bearerOf = ({ headers: { authorization } }: RequestInfo): string | undefined =>
  authorization === undefined ? undefined : /^Bearer +(\S+) *$/i.exec(authorization)?.[1]

/** Otherwise it could be renewed without end, and outlive the session of its page. */
const FOR_MCP_ONLY = 'this token of the console is for MCP only'

const openStore = async (
  data: string | undefined,
  shared: Shared | undefined,
  log: Log,
): Promise<TokenStore | undefined> => {
  if (!shared) return data === undefined ? undefined : openTokenStore(data, log)
  return openSharedTokenStore(shared, log, data === undefined ? undefined : await readTokens(tokenFilePath(data)))
}

/** Authenticates requests by bearer token. A token that is revoked or expires ends everything opened with it, at once. */
export const openAuthenticator = async (options: AuthenticatorOptions) => {
  const { data, shared, required, localToken, findSubstitute, policyFor, challenge, recordFailure, writeAudit, log } =
    options
  const store = await openStore(data, shared, log)
  const isStored = (id: string): boolean => [...(store?.tokens.values() ?? [])].some(token => token.id === id)
  const lastUsed = data === undefined ? undefined : createLastUsed(data, isStored, log)
  // What is open, with its token; undefined if it was admitted while none was needed.
  const sessions = new Map<() => void, string | undefined>() // token ids by the function that ends it
  const responses = new OpenResponses<string | undefined>()
  const lastAdmissions = new LastAdmissions<Token>()
  let tokens: ReadonlyMap<string, Token> = new Map() // by hash
  let nextExpiry: NodeJS.Timeout | undefined

  /** The connection is destroyed when the token becomes invalid, unless the response has closed before. */
  const trackResponse = ({ socket }: RequestInfo, token: Token | undefined, response?: ServerResponse): void => {
    if (response && !socket.destroyed) responses.add(response, token?.id)
  }

  /** Whether a token is needed now. */
  const isRequired = (): boolean => required || (store?.exists ?? false)

  const tokenOfSecret = (secret: string): Token | undefined => findToken(tokens, secret) ?? findSubstitute(secret)

  /** The token of a request, valid or not; while none is required, only the local token is known. */
  const tokenOf = (request: RequestInfo): Token | undefined => {
    const secret = bearerOf(request)
    return secret === undefined ? undefined : tokenOfSecret(secret)
  }

  /** The valid token of a request, or the rejection. */
  const authenticate = (request: RequestInfo, workspace: string): Token | AuthRejection => {
    const secret = bearerOf(request)
    const token = secret === undefined ? undefined : tokenOfSecret(secret)
    // A 401 would make clients give up their token, or ask their user for another one.
    if (!token && store?.isUnread) return uncheckedToken(request, 'the tokens cannot be read from the store yet')
    if (secret === undefined) return missingToken(request, challenge)
    const now = Date.now()
    if (token && !isExpired(token, now)) {
      lastUsed?.record(token.id, now)
      return token
    }
    const reason = token ? 'The token has expired' : 'The token is unknown or revoked'
    return recordFailure(invalidToken(request, reason, challenge), request, workspace, token?.id)
  }

  const check = (request: RequestInfo, workspace: string, response?: ServerResponse): Admission => {
    const again = lastAdmissions.find(request, workspace)
    if (again) return admit(again, request, response)
    const token = authenticate(request, workspace)
    if ('kind' in token) return token
    if (!canAccess(token, workspace))
      return recordFailure(wrongWorkspace(request, workspace), request, workspace, token.id)
    const standsForAnother = findSubstitute(bearerOf(request) ?? '') !== undefined // and can end before it
    if (!standsForAnother) lastAdmissions.set(request, workspace, token, expiryOf(token))
    return admit(token, request, response)
  }

  const admit = (token: Token, request: RequestInfo, response?: ServerResponse): Admission => {
    trackResponse(request, token, response)
    const { id, principal, policy: policyName } = token
    if (policyName === undefined) return { kind: 'in', principal, token: id }
    return { kind: 'in', principal, policy: policyFor(id, policyName), policyName, token: id }
  }

  const update = (): void => {
    const before = tokens
    tokens = new Map([...(store?.tokens ?? []), [localToken.hash, localToken]])
    if (writeAudit && before.size > 0) writeTokenEvents(before, tokens, writeAudit)
    endInvalid()
  }

  /** Ends everything whose token is no longer valid; runs again when the next token expires. */
  const endInvalid = (): void => {
    lastAdmissions.clear()
    const now = Date.now()
    const valid = new Set([...tokens.values()].filter(token => !isExpired(token, now)).map(({ id }) => id))
    const isStillValid = (id: string | undefined): boolean => (id === undefined ? !isRequired() : valid.has(id))
    for (const [end, id] of [...sessions]) if (!isStillValid(id) && sessions.delete(end)) end()
    responses.destroyUnless(isStillValid)
    clearTimeout(nextExpiry)
    const ends = [...tokens.values()].map(({ expires }) => Date.parse(expires ?? '')).filter(end => end > now)
    if (ends.length === 0) return
    nextExpiry = setTimeout(endInvalid, Math.min(Math.min(...ends) - now, LONGEST_TIMER_MS)).unref()
  }

  store?.onChange(update)
  update()

  return {
    isRequired,
    check,
    /** Whether a request may see the state of the whole gateway: only with an unrestricted token. */
    checkOperator: (request: RequestInfo): Admission => {
      const secret = bearerOf(request)
      if (secret !== undefined && findSubstitute(secret)) return forbidden(request, FOR_MCP_ONLY)
      const token = authenticate(request, EVERY_WORKSPACE)
      if ('kind' in token) return token
      if (!canAccess(token, EVERY_WORKSPACE) || token.policy !== undefined) return restrictedToken(request)
      const { id, principal, admin = false } = token
      return { kind: 'in', principal, token: id, isAdmin: admin }
    },
    /**
     * Tracks a request admitted without a token; its connection is destroyed when the first token is created. Returns the id of
     * the token it has nevertheless.
     */
    trackAnonymous: (request: RequestInfo, response?: ServerResponse): string | undefined => {
      const token = tokenOf(request)
      trackResponse(request, token, response)
      return token?.id
    },
    tokens: {
      isValid: (id: string | undefined): boolean => {
        if (id === undefined) return !isRequired()
        return [...tokens.values()].some(token => token.id === id && !isExpired(token, Date.now()))
      },
      onRevoked: (id: string | undefined, end: () => void): (() => void) => {
        sessions.set(end, id)
        return () => sessions.delete(end)
      },
    } satisfies OpenerTokens,
    /** Those that users have created: without the one of this process. */
    apiTokens: {
      find: secret => (store ? findToken(store.tokens, secret) : undefined),
      byId: id => [...(store?.tokens.values() ?? [])].find(token => token.id === id),
      refresh: async () => {
        if (store && !(await store.reload())) throw new StateError('away', 'The API tokens cannot be read now.')
      },
    } satisfies StoredApiTokens,
    /** Whether `check` would admit a request; counts and logs nothing. */
    canAccess: (request: RequestInfo, workspace: string): boolean => {
      const token = tokenOf(request)
      return token !== undefined && !isExpired(token, Date.now()) && canAccess(token, workspace)
    },
    /** For the owner, who sees and changes the tokens. */
    stored: {
      onChange: listener => store?.onChange(listener),
      reload: async () => void (await store?.reload()),
      lastUsed: async () => lastUsed?.readAll() ?? {},
    } satisfies StoredTokens,
    close: async (): Promise<void> => {
      store?.close()
      clearTimeout(nextExpiry)
      await lastUsed?.close()
    },
  }
}
