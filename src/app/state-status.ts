import type { StateStatus } from '../protocol/status.ts'
import type { StateStore } from '../stores/state/state-store.ts'

/** Describes a store and the replicas that share it; `forwards` counts the requests that others serve for this one now. */
export const createStateStatus =
  (store: Pick<StateStore, 'health' | 'members'>, forwards: () => number) => (): StateStatus => {
    const { self } = store.members
    const replicas = store.members.all().map(({ replica, address, labels }) => ({
      name: replica,
      address,
      labels,
      isSelf: replica === self,
    }))
    return { ...store.health(), forwards: forwards(), replicas }
  }
