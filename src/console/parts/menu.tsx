import { useId, useRef } from 'preact/hooks'
import { Icon, type IconName } from './icon.tsx'
import { Kbd } from './kbd.tsx'

export interface MenuItem {
  readonly label: string
  readonly icon?: IconName | undefined
  readonly keys?: string | undefined
  readonly isDanger?: boolean | undefined
  readonly disabled?: boolean | undefined
  readonly isChecked?: boolean | undefined // one of several choices
  readonly onSelect: () => void
}

export interface MenuProps {
  readonly label: string // the name of the button
  readonly icon?: IconName | undefined // the button shows it alone, unless there is a text
  readonly text?: string | undefined
  readonly items: readonly MenuItem[]
}

const GAP = 4

/** A button that opens a list of actions. */
export const Menu = ({ label, icon = 'more', text, items }: MenuProps) => {
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const id = useId()

  /** Below the button, or above it where there is no room; inside the window. */
  const place = (): void => {
    const [from, box] = [button.current?.getBoundingClientRect(), list.current]
    if (!from || !box) return
    const { offsetHeight: height, offsetWidth: width } = box
    const isBelow = from.bottom + GAP + height <= innerHeight || from.top < height
    box.style.top = `${Math.max(GAP, isBelow ? from.bottom + GAP : from.top - GAP - height)}px`
    box.style.left = `${Math.max(GAP, Math.min(from.left, innerWidth - width - GAP))}px`
  }

  const entries = (): HTMLButtonElement[] =>
    [...(list.current?.querySelectorAll('button') ?? [])].filter(each => !each.disabled)
  const move = (event: KeyboardEvent): void => {
    const all = entries()
    const at = all.indexOf(document.activeElement as HTMLButtonElement)
    const targets: Readonly<Record<string, number>> = {
      ArrowDown: (at + 1) % all.length,
      ArrowUp: (at - 1 + all.length) % all.length,
      Home: 0,
      End: all.length - 1,
    }
    const next = targets[event.key]
    if (next === undefined) return
    event.preventDefault()
    event.stopPropagation()
    all[next]?.focus()
  }

  return (
    <>
      <button
        ref={button}
        type="button"
        class={text === undefined ? 'icon-button' : 'button button-plain'}
        aria-label={text === undefined ? label : undefined}
        title={label}
        aria-haspopup="menu"
        popovertarget={id}
      >
        <Icon name={icon} />
        {text !== undefined && <span>{text}</span>}
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        tabIndex={-1}
        aria-label={label}
        class="menu"
        onKeyDown={move}
        onToggle={event => {
          if (event.newState !== 'open') return
          place()
          entries()[0]?.focus()
        }}
      >
        {items.map(item => (
          <MenuEntry key={item.label} item={item} close={() => list.current?.hidePopover()} />
        ))}
      </div>
    </>
  )
}

const MenuEntry = ({ item, close }: { readonly item: MenuItem; readonly close: () => void }) => (
  <button
    type="button"
    {...(item.isChecked === undefined
      ? { role: 'menuitem' as const }
      : { role: 'menuitemradio' as const, 'aria-checked': item.isChecked })}
    class={item.isDanger ? 'menu-item menu-danger' : 'menu-item'}
    disabled={item.disabled}
    onClick={() => {
      close()
      item.onSelect()
    }}
  >
    {item.icon ? <Icon name={item.icon} /> : <span class="icon" />}
    <span>{item.label}</span>
    {item.isChecked && <Icon name="check" />}
    {item.keys && <Kbd keys={item.keys} />}
  </button>
)
