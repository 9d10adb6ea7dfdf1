import { signal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useShortcuts } from '../keys.ts'
import { IconButton } from './button.tsx'

export interface SplitViewProps {
  readonly children: ComponentChildren // the list
  readonly detail?: VNode | undefined // of what is selected; undefined: the pane is closed
  readonly title?: ComponentChildren // of the pane
  readonly label: string // the name of the pane
  readonly actions?: ComponentChildren // beside the title
  readonly onClose: () => void // the cross, and Esc
  readonly storageKey: string // under which the browser keeps the width
  readonly defaultWidth?: number // of the pane, in pixels
}

const LEAST = 280
const STEP = 24
const NARROW = matchMedia('(max-width: 860px)')

/** In a narrow window the pane covers the list. */
const isNarrow = signal(NARROW.matches)
NARROW.addEventListener('change', ({ matches }) => {
  isNarrow.value = matches
})

const storedWidth = (key: string): number | undefined => {
  try {
    return Number(localStorage.getItem(key)) || undefined
  } catch {
    return undefined
  }
}

const keepWidth = (key: string, width: number): void => {
  try {
    localStorage.setItem(key, String(width))
  } catch {
    // it holds until the page is closed
  }
}

/** A list, and beside it the details of what is selected; the border between them can be moved. */
export const SplitView = (props: SplitViewProps) => {
  const { children, detail, title, label, actions, onClose, storageKey, defaultWidth = 480 } = props
  const key = `dragoman-width-${storageKey}`
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(() => storedWidth(key) ?? defaultWidth)
  const isOpen = detail !== undefined
  useShortcuts('Details', isOpen ? [{ keys: 'Escape', label: 'Close the details', run: onClose }] : [])

  const resize = (next: number): void => {
    const most = (box.current?.clientWidth ?? innerWidth) - LEAST
    const bounded = Math.round(Math.max(LEAST, Math.min(most, next)))
    setWidth(bounded)
    keepWidth(key, bounded)
  }
  const drag = (event: PointerEvent): void => {
    const handle = event.currentTarget as HTMLElement
    handle.setPointerCapture(event.pointerId)
    const move = ({ clientX }: PointerEvent): void =>
      resize((box.current?.getBoundingClientRect().right ?? 0) - clientX)
    const end = (): void => handle.removeEventListener('pointermove', move)
    handle.addEventListener('pointermove', move)
    handle.addEventListener('pointerup', end, { once: true })
    handle.addEventListener('pointercancel', end, { once: true })
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key]
    if (by === undefined) return
    event.preventDefault()
    resize(width + by)
  }

  return (
    <div ref={box} class="split">
      <div class="split-main" inert={isOpen && isNarrow.value}>
        {children}
      </div>
      {isOpen && (
        <>
          <div
            class="split-handle"
            role="separator"
            tabIndex={0}
            aria-label="Width of the details"
            aria-orientation="vertical"
            aria-valuenow={width}
            aria-valuemin={LEAST}
            onPointerDown={drag}
            onKeyDown={onKeyDown}
          />
          <section class="split-detail" aria-label={label} style={{ width: isNarrow.value ? '' : `${width}px` }}>
            <header class="split-head">
              <h2>{title ?? label}</h2>
              {actions}
              <IconButton icon="close" label="Close (Esc)" onClick={onClose} />
            </header>
            <div class="split-body" tabIndex={0} role="group" aria-label={label}>
              {detail}
            </div>
          </section>
        </>
      )}
    </div>
  )
}
