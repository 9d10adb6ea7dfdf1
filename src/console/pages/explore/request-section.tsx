import type { ComponentChildren } from 'preact'
import { MODERN } from '../../../protocol/revisions.ts'
import { useShortcuts } from '../../keys.ts'
import { withCallMeta } from '../../mcp/client-settings.ts'
import type { JsonObject } from '../../mcp/messages.ts'
import { Button } from '../../parts/button.tsx'
import { CallView, isCancelledByEsc } from './call-view.tsx'
import { type CallRecord, latestCall, startCall } from './calls.ts'
import { clientSettings, connection, targetUrl } from './connection.ts'
import { CopyMenu } from './copy-menu.tsx'
import type { ExploreKind } from './kinds.ts'

export interface RequestSectionProps {
  readonly target: string
  readonly kind: ExploreKind
  readonly subject: string // of the item
  readonly action: string // the verb on the button
  readonly method: string
  readonly params: JsonObject
  readonly canSend: boolean
  readonly onBlocked?: (() => void) | undefined // the user tried to send what is not complete
  readonly children?: ComponentChildren // more buttons
}

export const sendItem = (
  props: Pick<RequestSectionProps, 'target' | 'kind' | 'subject' | 'method' | 'params'>,
): CallRecord | undefined => {
  const current = connection.peek()
  if (!current) return undefined
  const { target, kind, subject, method } = props
  const params = withCallMeta(props.params, clientSettings.peek())
  return startCall({ client: current.client, revision: current.revision, target, kind, subject, method, params })
}

/** The button that sends a request of a prompt or resource, and what came of it. */
export const RequestSection = (props: RequestSectionProps) => {
  const { target, kind, subject, action, method, canSend, onBlocked, children } = props
  const record = latestCall(target, kind, subject)
  const canCancel = isCancelledByEsc(record)
  const send = (): void => (canSend ? void sendItem(props) : onBlocked?.())
  useShortcuts('Request', [
    { keys: 'mod+Enter', label: action, isGlobal: true, run: send },
    ...(canCancel
      ? [{ keys: 'Escape', label: 'Cancel the request', isGlobal: true, run: () => record?.cancel() }]
      : []),
  ])
  return (
    <>
      <div class="call-actions">
        <Button kind="primary" icon="play" keys="mod+Enter" disabled={connection.value === undefined} onClick={send}>
          {action}
        </Button>
        {children}
        <CopyMenu
          request={() => ({
            url: targetUrl(target),
            revision: connection.peek()?.revision ?? MODERN,
            method,
            params: withCallMeta(props.params, clientSettings.peek()),
          })}
        />
      </div>
      {record && <CallView key={record.id} record={record} />}
    </>
  )
}
