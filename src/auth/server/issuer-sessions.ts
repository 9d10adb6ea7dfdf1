import { randomBytes, randomUUID } from 'node:crypto'
import type { Issuer } from '../../config/snapshot.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { sleep, within } from '../../std/time.ts'
import { RecordChanges } from '../../stores/state/record-changes.ts'
import type { Held, StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { hashSecret } from '../token.ts'
import { untilStored } from '../until-stored.ts'
import type { Claims } from '../verify/claims.ts'
import type { SubjectAccess } from './access.ts'
import { type IssuerIdentity, type IssuerLogin, SignInFailed } from './issuer-login.ts'

/** What a person with these claims may use; a text says why nothing. */
export type AccessOfClaims = (issuer: Issuer, claims: Claims) => SubjectAccess | string

interface IssuerSessionOptions {
  readonly store: Pick<StateStore, 'create' | 'read' | 'take' | 'write' | 'remove' | 'members'>
  readonly issuers: ReadonlyMap<string, Issuer>
  readonly login: Pick<IssuerLogin, 'refresh'>
  readonly accessOfClaims: AccessOfClaims
  readonly log: Log
}

/** A record of kind `login`: a person who has signed in at an issuer. Grants refer to it. */
interface SessionRecord {
  readonly issuer: string
  readonly claims: Claims
  readonly refreshToken?: string | undefined // of the issuer
  readonly idToken?: string | undefined
  readonly checkedAt: number // when the issuer last said so
  readonly until: number // the end of the record
  readonly asking?: AskClaim | undefined
}

/** Says that a replica asks the issuer. */
interface AskClaim {
  readonly id: string
  readonly replica: string
}

/** `unavailable`: the issuer or the store did not answer in time. */
type SessionState = 'valid' | 'ended' | 'unavailable'

export interface IssuerSessions {
  /** Rejects with SignInFailed if the person may use nothing. */
  create(issuer: Issuer, identity: IssuerIdentity): Promise<{ readonly id: string; readonly principal: string }>
  accessOf(id: string): Promise<SubjectAccess | undefined>
  /** The ID token of a principal at an issuer, for as long as it is valid; it is renewed where the issuer allows it. */
  findIdToken(principal: string, issuer: string): Promise<string | undefined>
  /** Asks the issuer whether the person may still sign in. */
  renew(id: string): Promise<SessionState>
}

const KIND = 'login'
const UNREFRESHED_MS = 12 * 60 * 60_000 // without a refresh token the issuer cannot be asked again
const IDLE_MS = 30 * 24 * 60 * 60_000
const FRESH_MS = 60_000 // for which an answer of the issuer counts
const ASKING_MS = 30_000 // for another live replica to ask the issuer
const POLL_MS = 200
const RENEW_MS = 20_000 // that callers wait
const LATE_MS = 5000 // for a replica that was replaced to store its answer; it tries every two seconds
const ID_TOKEN_LEFT_MS = 30_000 // that an ID token must be valid for

export const createIssuerSessions = (options: IssuerSessionOptions): IssuerSessions => {
  const { store, issuers, login, accessOfClaims, log } = options
  const latest = new RecordChanges<{ readonly session: string }>(store, KIND)
  const renewing = new Map<string, SingleFlight<SessionState>>()

  const accessOfRecord = ({ issuer: name, claims }: SessionRecord): SubjectAccess | undefined => {
    const issuer = issuers.get(name)
    const access = issuer && accessOfClaims(issuer, claims)
    return typeof access === 'string' ? undefined : access
  }

  /**
   * Stores what an answer of the issuer led to, unless the claim was lost, or for `new tokens` unless another answer is stored
   * already. Returns what is stored then.
   */
  const settle = (
    id: string,
    asked: SessionRecord,
    next: SessionRecord | undefined,
    reason: 'new tokens' | 'no tokens',
  ): Promise<SessionRecord | undefined> =>
    untilStored<SessionRecord | undefined>(
      async () => {
        const taken = await store.take(KIND, id)
        if (taken.kind === 'none') return { result: undefined }
        if (taken.kind === 'other') return undefined
        const current = decode(taken.held)
        const isOwn = reason === 'new tokens' || current.asking?.id === asked.asking?.id
        if (current.checkedAt !== asked.checkedAt || !isOwn) return { result: current }
        if (next === undefined) return void (await store.remove(taken.held)) // to see whether it is gone
        const isWritten = await store.write(taken.held, encode(next), { expires: next.until, durable: true })
        return isWritten ? { result: next } : undefined
      },
      () => log.warn({ issuer: asked.issuer }, 'refreshed session at an issuer could not be stored yet'),
    )

  const stateOf = (record: SessionRecord | undefined): SessionState =>
    record && accessOfRecord(record) ? 'valid' : 'ended'

  /** Another replica may have got an answer meanwhile: it counts. */
  const giveUp = async (id: string, asked: SessionRecord, isEnded: boolean): Promise<SessionState> => {
    const stored = await settle(id, asked, isEnded ? undefined : { ...asked, asking: undefined }, 'no tokens')
    if (!stored || stored.checkedAt !== asked.checkedAt) return stateOf(stored)
    return 'unavailable'
  }

  /** `hasReplaced`: another replica asked before, and its answer may only be late. */
  const askIssuer = async (
    id: string,
    asked: SessionRecord,
    issuer: Issuer,
    hasReplaced: boolean,
  ): Promise<SessionState> => {
    const identity = await login.refresh(issuer, asked.refreshToken ?? '', asked.claims).catch((error: Error) => error)
    if (identity instanceof SignInFailed) {
      const isEnded = identity.reason === 'ended'
      log.warn({ issuer: issuer.name, reason: identity.message }, 'session at an issuer not refreshed')
      if (isEnded && hasReplaced) await sleep(LATE_MS)
      return giveUp(id, asked, isEnded)
    }
    if (identity instanceof Error) {
      await giveUp(id, asked, false)
      throw identity
    }
    const now = Date.now()
    const { claims, refreshToken, idToken = asked.idToken } = identity
    const times = { checkedAt: now, until: now + IDLE_MS }
    const next: SessionRecord = { issuer: asked.issuer, claims, refreshToken, idToken, ...times }
    return stateOf(await settle(id, asked, next, 'new tokens'))
  }

  /** Whether another live replica asks. A claim of this replica is left over: its caller would share the one in `renewing`. */
  const isAskedElsewhere = (asking: AskClaim | undefined): boolean =>
    asking !== undefined && asking.replica !== store.members.self && store.members.at(asking.replica) !== undefined

  const renew = async (id: string): Promise<SessionState> => {
    let [seen, seenAt] = ['', 0] // the claim of a replica, by the clock of this one
    for (;;) {
      const found = await store.read(KIND, id)
      const record = found && decode(found)
      const issuer = record && issuers.get(record.issuer)
      if (!record || !issuer || !accessOfRecord(record)) return 'ended'
      const { refreshToken, checkedAt, asking } = record
      if (refreshToken === undefined || Date.now() - checkedAt < FRESH_MS) return 'valid'
      if (asking && asking.id !== seen) [seen, seenAt] = [asking.id, Date.now()]
      const isAsked = isAskedElsewhere(asking) && Date.now() - seenAt < ASKING_MS
      const taken = isAsked ? undefined : await store.take(KIND, id)
      const current = taken?.kind === 'mine' ? decode(taken.held) : undefined
      if (taken?.kind === 'mine' && current?.checkedAt === checkedAt && current.asking?.id === asking?.id) {
        const claimed = { ...current, asking: { id: randomUUID(), replica: store.members.self } }
        if (await store.write(taken.held, encode(claimed), { expires: claimed.until, durable: true }))
          return askIssuer(id, claimed, issuer, asking !== undefined && asking.replica !== store.members.self)
      }
      await sleep(POLL_MS)
    }
  }

  /** Callers do not wait for a store that is away; the answer of the issuer is stored when it is back. */
  const renewOnce: IssuerSessions['renew'] = id => {
    const flight = renewing.get(id) ?? new SingleFlight()
    renewing.set(id, flight)
    const renewed = flight.run(() => renew(id).finally(() => renewing.delete(id)))
    return within(RENEW_MS, renewed, (): SessionState => 'unavailable')
  }

  return {
    create: async (issuer, { claims, refreshToken, idToken }) => {
      const access = accessOfClaims(issuer, claims)
      if (typeof access === 'string') throw new SignInFailed('refused', access)
      const id = `session-${randomBytes(18).toString('base64url')}`
      const now = Date.now()
      const until = now + (refreshToken === undefined ? UNREFRESHED_MS : IDLE_MS)
      const record: SessionRecord = { issuer: issuer.name, claims, refreshToken, idToken, checkedAt: now, until }
      await store.create(KIND, id, encode(record), { expires: until, durable: true })
      if (idToken !== undefined)
        await latest.change(pointerId(access.principal, issuer.name), () => ({
          next: { body: { session: id }, expires: until },
          result: undefined,
        }))
      return { id, principal: access.principal }
    },

    accessOf: async id => {
      const held = await store.read(KIND, id)
      return held && accessOfRecord(decode(held))
    },

    findIdToken: async (principal, issuer) => {
      const { session } = (await latest.read(pointerId(principal, issuer))) ?? {}
      if (session === undefined) return undefined
      const read = async (): Promise<string | undefined> => {
        const held = await store.read(KIND, session)
        const record = held && decode(held)
        const isOwn = record && accessOfRecord(record)?.principal === principal
        return isOwn && isUsable(record.idToken) ? record.idToken : undefined
      }
      return (await read()) ?? ((await renewOnce(session)) === 'valid' ? read() : undefined)
    },

    renew: renewOnce,
  }
}

/** The record that names the latest session of a principal at an issuer. */
const pointerId = (principal: string, issuer: string): string =>
  `latest-${hashSecret(JSON.stringify([issuer, principal]))}`

const isUsable = (idToken: string | undefined): boolean => {
  const payload = Buffer.from(idToken?.split('.')[1] ?? '', 'base64url').toString() || '{}'
  const { exp } = JSON.parse(payload) as { readonly exp?: number }
  return exp !== undefined && exp * 1000 - ID_TOKEN_LEFT_MS > Date.now()
}

const encode = (record: SessionRecord): Buffer => Buffer.from(JSON.stringify(record))
const decode = ({ body }: Held): SessionRecord => JSON.parse(body.toString()) as SessionRecord
