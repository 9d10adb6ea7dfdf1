import type { ComponentChildren } from 'preact'

interface AnswerFormProps {
  readonly onSubmit?: (() => void) | undefined // undefined: only its buttons answer
  readonly children: ComponentChildren
}

/** The fields and buttons that answer a question. Ctrl+Enter in a field answers it, and never calls the tool again. */
export const AnswerForm = ({ onSubmit, children }: AnswerFormProps) => {
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.stopPropagation()
    const isField = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
    if (!isField) return // the focus is on another button, such as the one that declines
    event.preventDefault()
    if (!event.repeat) onSubmit?.()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the key belongs to all fields of the form
    <div class="question-form" onKeyDown={onKeyDown}>
      {children}
    </div>
  )
}
