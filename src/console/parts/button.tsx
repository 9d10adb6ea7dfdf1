import type { ComponentChildren, JSX } from 'preact'
import { Icon, type IconName } from './icon.tsx'
import { Kbd } from './kbd.tsx'

type NativeButton = Omit<JSX.IntrinsicElements['button'], 'icon' | 'title' | 'children' | 'class'>

export interface ButtonProps extends NativeButton {
  readonly children: ComponentChildren
  /** `primary`: the one main action of a view; `danger`: what cannot be undone; `quiet`: without a border. */
  readonly kind?: 'plain' | 'primary' | 'danger' | 'quiet'
  readonly icon?: IconName | undefined
  readonly isBusy?: boolean | undefined // it works, and cannot be pressed again
  readonly keys?: string | undefined // the keys that do the same
  readonly title?: string | undefined
}

/** A button that says what it does. */
export const Button = ({ children, kind = 'plain', icon, isBusy, keys, disabled, ...rest }: ButtonProps) => (
  <button type="button" {...rest} class={`button button-${kind}`} disabled={disabled || isBusy} aria-busy={isBusy}>
    {icon && <Icon name={icon} />}
    <span>{children}</span>
    {keys && <Kbd keys={keys} />}
  </button>
)

export interface IconButtonProps extends NativeButton {
  readonly icon: IconName
  readonly label: string // its name; shown when the pointer rests on it
  readonly isPressed?: boolean | undefined // for buttons that switch something on and off
}

export const IconButton = ({ icon, label, isPressed, ...rest }: IconButtonProps) => (
  <button type="button" {...rest} class="icon-button" aria-label={label} title={label} aria-pressed={isPressed}>
    <Icon name={icon} />
  </button>
)
