import { randomBytes } from 'node:crypto'
import { Listeners } from './listeners.ts'
import { STATE_VERSION } from './sealing.ts'
import type { Membership, Replica, ReplicaAbout } from './state-store.ts'

/** A name that no other replica has had. */
export const newReplicaName = (): string => randomBytes(9).toString('base64url')

interface MemoryMember {
  readonly left: Listeners<string>
  /** Joins again after a missed lease. */
  rejoin(): void
}

/** A replica of a cluster in memory. */
export interface OwnMembership extends Membership {
  readonly isAlive: boolean
  /** This replica is about to leave: it does not join again. */
  retire(): void
}

/** The replicas of a cluster in memory. A lease lasts until it is ended. */
export class MemoryMembers {
  readonly #replicas = new Map<string, Replica>()
  readonly #members = new Map<string, MemoryMember>()

  /** `onLapsed` is called with the former name of a replica that has joined again. */
  join(about: ReplicaAbout, onLapsed: (former: string) => void): OwnMembership {
    const [left, renamed] = [new Listeners<string>(), new Listeners<string>()]
    let self = newReplicaName()
    let latest = about
    let isLeaving = false
    const enter = (): void => {
      this.#replicas.set(self, { ...latest, replica: self, version: STATE_VERSION })
      this.#members.set(self, { left, rejoin })
    }
    const rejoin = (): void => {
      if (isLeaving) return
      const former = self
      self = newReplicaName()
      enter()
      onLapsed(former)
      renamed.call(self)
    }
    enter()
    const replicas = this.#replicas
    return {
      get self() {
        return self
      },
      get isAlive() {
        return replicas.has(self)
      },
      at: replica => replicas.get(replica),
      all: () => [...replicas.values()],
      announce: async next => {
        latest = next
        if (replicas.has(self)) enter()
      },
      reportDead: async replica => this.end(replica, 'lapsed'),
      retire: () => {
        isLeaving = true
      },
      onLeft: listener => left.add(listener),
      onRenamed: listener => renamed.add(listener),
    }
  }

  /** Ends a lease. A replica that has lapsed but still runs joins again; one that was killed or closed does not. */
  end(replica: string, why: 'killed' | 'lapsed' | 'closed'): void {
    const member = this.#members.get(replica)
    if (!member || !this.#replicas.delete(replica)) return
    this.#members.delete(replica)
    for (const { left } of this.#members.values()) left.call(replica)
    if (why === 'lapsed') member.rejoin()
  }
}
