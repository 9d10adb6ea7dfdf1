import { useEffect, useRef, useState } from 'preact/hooks'
import { Field } from '../../parts/field.tsx'
import { isEqual } from './edits.ts'

interface JsonValueFieldProps {
  readonly name: string
  readonly hint?: string | undefined
  readonly error?: string | undefined
  readonly value: unknown
  readonly onChange: (value: unknown) => void
}

const format = (value: unknown): string => (value === undefined ? '' : JSON.stringify(value, undefined, 2))

/** A value that has no control of its own, as JSON. A text that is not JSON stays in the field and changes nothing. */
export const JsonValueField = ({ name, hint, error, value, onChange }: JsonValueFieldProps) => {
  const [text, setText] = useState(format(value))
  const [wrong, setWrong] = useState<string | undefined>()
  const sent = useRef(value)
  useEffect(() => {
    if (isEqual(sent.current, value)) return
    sent.current = value
    setText(format(value))
    setWrong(undefined)
  }, [value])

  const read = (next: string): void => {
    setText(next)
    try {
      const parsed: unknown = next.trim() === '' ? undefined : JSON.parse(next)
      setWrong(undefined)
      sent.current = parsed
      onChange(parsed)
    } catch (reason) {
      setWrong(`Not JSON yet: ${(reason as Error).message}`)
    }
  }
  return (
    <Field label={name} hint={hint ? `${hint} Written as JSON.` : 'Written as JSON.'} error={wrong ?? error}>
      {control => (
        <textarea
          {...control}
          class="mono"
          spellcheck={false}
          rows={Math.min(12, Math.max(2, text.split('\n').length))}
          value={text}
          onInput={({ currentTarget }) => read(currentTarget.value)}
        />
      )}
    </Field>
  )
}
