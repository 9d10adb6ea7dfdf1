import { useRef } from 'preact/hooks'
import { JsonTextError } from '../exact-json.ts'
import { Field } from '../parts/field.tsx'

export interface JsonEditorProps {
  readonly label: string
  readonly text: string
  readonly error: Error | undefined
  readonly problems?: readonly string[] // of the value, where the text is JSON
  readonly onInput: (text: string) => void
}

const MOST_ROWS = 24

/** JSON as text. An error names its place, and leads there. */
export const JsonEditor = ({ label, text, error, problems = [], onInput }: JsonEditorProps) => {
  const area = useRef<HTMLTextAreaElement>(null)
  const rows = Math.min(MOST_ROWS, Math.max(4, text.split('\n').length + 1))
  const showPlace = (): void => {
    if (!(error instanceof JsonTextError)) return
    area.current?.focus()
    area.current?.setSelectionRange(error.position, error.position + 1)
  }
  return (
    <div class="json-editor">
      <Field
        label={label}
        error={error?.message}
        hint={problems.length > 0 ? undefined : 'A JSON object; numbers keep all their digits'}
      >
        {control => (
          <textarea
            {...control}
            ref={area}
            class="mono"
            rows={rows}
            spellcheck={false}
            autocomplete="off"
            value={text}
            onInput={({ currentTarget }) => onInput(currentTarget.value)}
          />
        )}
      </Field>
      {error instanceof JsonTextError && (
        <button type="button" class="link" onClick={showPlace}>
          Go to the error
        </button>
      )}
      {!error &&
        problems.map(problem => (
          <p key={problem} class="field-error">
            {problem}
          </p>
        ))}
    </div>
  )
}
