import { useEffect, useRef } from 'preact/hooks'
import type { GatewayStatus } from '../../../protocol/status.ts'
import { api } from '../../api.ts'
import { onFeed } from '../../events.ts'
import { memoryChanged } from './memory-client.ts'

const LOOK_MS = 15_000 // other processes and replicas change a memory without an event here

export interface FollowedMemory {
  readonly server: string
  /** A small answer of the admin API that differs after a change, and what the page knows of it; undefined: not yet. */
  readonly path: string
  readonly known: unknown
  readonly isOn: boolean
}

/** Reads what is shown again when others have changed the memory: looks after requests to its server, and now and then. */
export const useFollowing = (memory: FollowedMemory): void => {
  const latest = useRef(memory)
  latest.current = memory
  const { server, path, isOn } = memory
  useEffect(() => {
    if (!isOn) return
    const abort = new AbortController()
    let requests: number | undefined
    let isLooking = false
    let isAgain = false // something has happened while the last look was under way
    const look = async (): Promise<void> => {
      isAgain = isLooking
      if (isLooking || document.hidden) return
      isLooking = true
      // Without an answer there is nothing new; the page itself says why it cannot be read.
      const found = await api.get<unknown>(path, { signal: abort.signal }).catch(() => undefined)
      isLooking = false
      const { known } = latest.current
      if (abort.signal.aborted || found === undefined) return
      if (known !== undefined && JSON.stringify(found) !== JSON.stringify(known)) memoryChanged()
      if (isAgain) void look()
    }
    const stop = onFeed('status', data => {
      const { activity } = (data as GatewayStatus).servers.find(({ name }) => name === server) ?? {}
      const isNew = requests !== undefined && activity?.calls !== requests
      requests = activity?.calls ?? 0
      if (isNew) void look()
    })
    const timer = setInterval(() => void look(), LOOK_MS)
    return () => {
      stop()
      clearInterval(timer)
      abort.abort()
    }
  }, [server, path, isOn])
}
