import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { GatewayStatus } from '../../../protocol/status.ts'
import { onFeed } from '../../events.ts'
import { toast } from '../../parts/toast.tsx'
import { loadSession } from '../../session.ts'

/** The gateway, as its latest event describes it; undefined until the first one. */
const liveStatus = signal<GatewayStatus | undefined>(undefined)

/** When the latest event came, as Unix time in milliseconds. */
export const liveStatusAt = signal(0)

const accept = (next: GatewayStatus): void => {
  const before = liveStatus.peek()
  liveStatus.value = next
  liveStatusAt.value = Date.now()
  if (!before || before.startedAt === next.startedAt) return
  toast('The gateway was restarted', { kind: 'info' })
  void loadSession().catch(() => {}) // the session may not have survived it
}

/** Follows the status while a page shows it. */
export const useLiveStatus = (): GatewayStatus | undefined => {
  useEffect(() => onFeed('status', data => accept(data as GatewayStatus)), [])
  return liveStatus.value
}
