import type { ComponentChildren } from 'preact'
import { CopyButton } from './copy-button.tsx'
import { Icon, type IconName } from './icon.tsx'

export interface EmptyProps {
  readonly icon?: IconName | undefined
  readonly title: string // what is not here
  readonly text?: ComponentChildren // why, and what to do next
  readonly command?: string | undefined // the command that does it, to be copied
  readonly children?: ComponentChildren // buttons
}

/** In place of a list without rows: says what to do next. */
export const Empty = ({ icon, title, text, command, children }: EmptyProps) => (
  <div class="empty">
    {icon && <Icon name={icon} />}
    <h2>{title}</h2>
    {text && <p>{text}</p>}
    {command && (
      <p class="empty-command">
        <code>{command}</code>
        <CopyButton text={command} label="Copy the command" />
      </p>
    )}
    {children && <p class="empty-actions">{children}</p>}
  </div>
)
