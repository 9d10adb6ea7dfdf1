import type { ComponentChildren } from 'preact'
import { Icon } from './icon.tsx'

export interface CalloutProps {
  readonly kind?: 'info' | 'warn' | 'error'
  readonly children: ComponentChildren
}

/** A few sentences that the user should not miss, within a pane or a dialog. */
export const Callout = ({ kind = 'info', children }: CalloutProps) => (
  <div class={`callout callout-${kind}`} role={kind === 'error' ? 'alert' : 'note'}>
    <Icon name={kind === 'info' ? 'info' : 'warning'} />
    <div>{children}</div>
  </div>
)
