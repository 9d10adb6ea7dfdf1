import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { Button, IconButton } from './button.tsx'

export interface DialogProps {
  readonly title: string
  readonly onClose: () => void // Esc, the cross, a click beside it
  readonly children: ComponentChildren
  readonly footer?: ComponentChildren // buttons, the main one last
  readonly size?: 'small' | 'medium' | 'large'
  /** Sends the dialog as a form: the button of type `submit` and Enter call it. */
  readonly onSubmit?: (() => void) | undefined
}

const FIRST_CONTROLS = [
  '[autofocus]',
  '.dialog-body :is(input, textarea, select):not(:disabled)',
  '.dialog-foot .button-primary:not(:disabled)',
  '.dialog-foot button', // the one that does nothing, where the main one cannot be undone
]

/** Where the keyboard is in a dialog that opens; the browser would choose the cross. */
const firstControl = (dialog: HTMLElement): HTMLElement | undefined => {
  for (const selector of FIRST_CONTROLS) {
    const found = dialog.querySelector<HTMLElement>(selector)
    if (found) return found
  }
  return undefined
}

/** Focuses the first control, and a better one that is loaded later, until the user has moved; returns how to end that. */
const keepFocus = (dialog: HTMLElement): (() => void) => {
  firstControl(dialog)?.focus()
  let chosen = document.activeElement
  const choose = (): void => {
    const isFree = document.activeElement === chosen || !dialog.contains(document.activeElement)
    const first = firstControl(dialog)
    if (!isFree || !first || first === document.activeElement) return
    chosen = first
    first.focus()
  }
  const stop = (): void => observer.disconnect()
  const observer = new MutationObserver(choose)
  observer.observe(dialog, { childList: true, subtree: true, attributeFilter: ['disabled'] })
  for (const event of ['keydown', 'pointerdown', 'input'] as const) dialog.addEventListener(event, stop, { once: true })
  return stop
}

/** Ctrl+Enter sends a form also from a field of several lines, if its button can be pressed. */
const submitByKeys = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.isComposing) return
  event.preventDefault()
  event.currentTarget.querySelector<HTMLButtonElement>('.dialog-foot [type=submit]:not(:disabled)')?.click()
}

/** A modal dialog; it is open while it is rendered. */
export const Dialog = ({ title, onClose, children, footer, size = 'small', onSubmit }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  // Before the next event: Esc right after the click closes the dialog, not what is behind it.
  useLayoutEffect(() => {
    const before = document.activeElement
    ref.current?.showModal()
    const stop = ref.current && keepFocus(ref.current)
    return () => {
      stop?.()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])

  const content = (
    <>
      <header class="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      <div class="dialog-body">{children}</div>
      {footer && <footer class="dialog-foot">{footer}</footer>}
    </>
  )
  return (
    <dialog
      ref={ref}
      class={`dialog dialog-${size}`}
      aria-labelledby={titleId}
      onCancel={event => {
        event.preventDefault()
        onClose()
      }}
      onClick={event => event.target === ref.current && onClose()}
    >
      {onSubmit ? (
        <form
          method="dialog"
          onSubmit={event => {
            event.preventDefault()
            onSubmit()
          }}
          onKeyDown={submitByKeys}
        >
          {content}
        </form>
      ) : (
        <div class="dialog-content">{content}</div>
      )}
    </dialog>
  )
}

export interface ConfirmProps {
  readonly title: string // a question
  readonly children: ComponentChildren // what will happen
  readonly action: string // the verb on the button
  readonly isDanger?: boolean
  readonly isBusy?: boolean
  readonly onConfirm: () => void
  readonly onClose: () => void
}

/** Asks before something that cannot be undone. */
export const Confirm = ({ title, children, action, isDanger, isBusy, onConfirm, onClose }: ConfirmProps) => (
  <Dialog
    title={title}
    onClose={onClose}
    onSubmit={onConfirm}
    footer={
      <>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind={isDanger ? 'danger' : 'primary'} isBusy={isBusy}>
          {action}
        </Button>
      </>
    }
  >
    {children}
  </Dialog>
)
