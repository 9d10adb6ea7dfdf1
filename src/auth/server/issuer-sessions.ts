import { randomBytes } from 'node:crypto'
import type { Issuer } from '../../config/snapshot.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { sleep } from '../../std/time.ts'
import { RecordChanges } from '../../stores/state/record-changes.ts'
import type { Held, StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { hashSecret } from '../token.ts'
import type { Claims } from '../verify/claims.ts'
import type { SubjectAccess } from './access.ts'
import { type IssuerIdentity, type IssuerLogin, SignInFailed } from './issuer-login.ts'

/** What a person with these claims may use; a text says why nothing. */
export type AccessOfClaims = (issuer: Issuer, claims: Claims) => SubjectAccess | string

interface IssuerSessionOptions {
  readonly store: Pick<StateStore, 'create' | 'read' | 'take' | 'write' | 'remove'>
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
  readonly busyUntil?: number | undefined // a replica is asking the issuer
}

export interface IssuerSessions {
  /** Rejects with SignInFailed if the person may use nothing. */
  create(issuer: Issuer, identity: IssuerIdentity): Promise<{ readonly id: string; readonly principal: string }>
  accessOf(id: string): Promise<SubjectAccess | undefined>
  /** The ID token of a principal at an issuer, for as long as it is valid; it is renewed where the issuer allows it. */
  findIdToken(principal: string, issuer: string): Promise<string | undefined>
  /** Asks the issuer whether the person may still sign in. `unavailable`: it did not answer, nothing has changed. */
  renew(id: string): Promise<'valid' | 'ended' | 'unavailable'>
}

const KIND = 'login'
const UNREFRESHED_MS = 12 * 60 * 60_000 // without a refresh token the issuer cannot be asked again
const IDLE_MS = 30 * 24 * 60 * 60_000
const FRESH_MS = 60_000 // for which an answer of the issuer counts
const BUSY_MS = 30_000 // a replica that asks for longer has ended
const POLL_MS = 200
const RENEW_MS = 20_000
const ID_TOKEN_LEFT_MS = 30_000 // that an ID token must be valid for

export const createIssuerSessions = (options: IssuerSessionOptions): IssuerSessions => {
  const { store, issuers, login, accessOfClaims, log } = options
  const latest = new RecordChanges<{ readonly session: string }>(store, KIND)
  const renewing = new Map<string, SingleFlight<'valid' | 'ended' | 'unavailable'>>()

  const accessOfRecord = ({ issuer: name, claims }: SessionRecord): SubjectAccess | undefined => {
    const issuer = issuers.get(name)
    const access = issuer && accessOfClaims(issuer, claims)
    return typeof access === 'string' ? undefined : access
  }

  /** The records of one session are only changed by the replica that asks the issuer; others may take them in between. */
  const save = async (held: Held, record: SessionRecord | undefined): Promise<void> => {
    for (let claim = held; ; ) {
      if (record === undefined) await store.remove(claim)
      else if (await store.write(claim, encode(record), { expires: record.until, durable: true })) return
      const taken = await store.take(KIND, held.id)
      if (taken.kind !== 'mine') return
      claim = taken.held
    }
  }

  const askIssuer = async (
    held: Held,
    record: SessionRecord,
    issuer: Issuer,
    refreshToken: string,
  ): Promise<'valid' | 'ended' | 'unavailable'> => {
    try {
      const { claims, idToken, ...identity } = await login.refresh(issuer, refreshToken, record.claims)
      const now = Date.now()
      const next: SessionRecord = {
        issuer: record.issuer,
        claims,
        refreshToken: identity.refreshToken,
        idToken: idToken ?? record.idToken,
        checkedAt: now,
        until: now + IDLE_MS,
      }
      await save(held, next)
      return accessOfRecord(next) ? 'valid' : 'ended'
    } catch (error) {
      const isEnded = error instanceof SignInFailed && error.reason === 'ended'
      await save(held, isEnded ? undefined : { ...record, busyUntil: undefined })
      if (!(error instanceof SignInFailed)) throw error
      log.warn({ issuer: issuer.name, reason: error.message }, 'session at an issuer not refreshed')
      return isEnded ? 'ended' : 'unavailable'
    }
  }

  const renew = async (id: string): Promise<'valid' | 'ended' | 'unavailable'> => {
    const deadline = Date.now() + RENEW_MS
    while (Date.now() < deadline) {
      const seen = await store.read(KIND, id)
      const record = seen && decode(seen)
      const issuer = record && issuers.get(record.issuer)
      if (!record || !issuer || !accessOfRecord(record)) return 'ended'
      const { refreshToken, checkedAt, busyUntil = 0 } = record
      if (refreshToken === undefined || Date.now() - checkedAt < FRESH_MS) return 'valid'
      if (busyUntil > Date.now()) {
        await sleep(POLL_MS)
        continue
      }
      const taken = await store.take(KIND, id)
      if (taken.kind !== 'mine') return 'ended'
      const current = decode(taken.held)
      if ((current.busyUntil ?? 0) > Date.now() || current.checkedAt !== checkedAt) continue // another replica was first
      const busy: SessionRecord = { ...current, busyUntil: Date.now() + BUSY_MS }
      if (await store.write(taken.held, encode(busy), { expires: busy.until, durable: true }))
        return askIssuer(taken.held, current, issuer, refreshToken)
    }
    return 'unavailable'
  }

  const renewOnce: IssuerSessions['renew'] = id => {
    const flight = renewing.get(id) ?? new SingleFlight()
    renewing.set(id, flight)
    return flight.run(() => renew(id).finally(() => renewing.delete(id)))
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
