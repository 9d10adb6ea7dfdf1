import { signal } from '@preact/signals'
import { IconButton } from './button.tsx'
import { Icon } from './icon.tsx'

interface ToastOptions {
  readonly kind?: 'info' | 'ok' | 'error'
  /** A link or a button that follows up, such as Undo. */
  readonly action?: { readonly label: string; readonly run: () => void } | undefined
}

interface ShownToast extends ToastOptions {
  readonly id: number
  readonly text: string
}

const LASTS_MS = 6000
const MOST = 4

const toasts = signal<readonly ShownToast[]>([])
let lastId = 0

const dismiss = (id: number): void => {
  toasts.value = toasts.value.filter(each => each.id !== id)
}

/** Tells the user what happened. Errors stay until they are dismissed. */
export const toast = (text: string, options: ToastOptions = {}): void => {
  const id = ++lastId
  const others = toasts.value.filter(each => each.text !== text)
  toasts.value = [...others, { id, text, ...options }].slice(-MOST)
  if (options.kind !== 'error') setTimeout(() => dismiss(id), LASTS_MS)
}

const ICONS = { info: 'info', ok: 'check', error: 'warning' } as const

/** The place of all toasts; the frame of the console has it. */
export const Toasts = () => (
  <section class="toasts" aria-label="Messages" aria-live="polite">
    {toasts.value.map(({ id, text, kind = 'info', action }) => (
      <div key={id} class={`toast toast-${kind}`}>
        <Icon name={ICONS[kind]} />
        <span>{text}</span>
        {action && (
          <button
            type="button"
            class="link"
            onClick={() => {
              action.run()
              dismiss(id)
            }}
          >
            {action.label}
          </button>
        )}
        <IconButton icon="close" label="Dismiss" onClick={() => dismiss(id)} />
      </div>
    ))}
  </section>
)
