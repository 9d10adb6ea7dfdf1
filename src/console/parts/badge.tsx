import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'

export interface BadgeProps {
  readonly children: ComponentChildren
  readonly kind?: 'neutral' | 'accent' | 'ok' | 'warn' | 'error' // colours of states only for states
  readonly icon?: IconName | undefined
  readonly title?: string | undefined
}

/** A short word about the thing beside it. */
export const Badge = ({ children, kind = 'neutral', icon, title }: BadgeProps) => (
  <span class={`badge badge-${kind}`} title={title}>
    {icon && <Icon name={icon} />}
    {children}
  </span>
)

export interface StateDotProps {
  readonly state: 'ok' | 'warn' | 'error' | 'off' | 'busy'
  readonly label: string // the state as a word: the colour alone says nothing to some users
  readonly isBare?: boolean // only the dot; the word is its title
}

/** The state of a thing. */
export const StateDot = ({ state, label, isBare = false }: StateDotProps) =>
  isBare ? (
    <span class={`state-dot state-${state}`} role="img" aria-label={label} title={label} />
  ) : (
    <span class="state">
      <span class={`state-dot state-${state}`} />
      {label}
    </span>
  )
