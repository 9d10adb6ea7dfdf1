import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

/** Attributes of the control of a field, which connect it with its label and its texts. */
export interface ControlProps {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': boolean | undefined
  readonly 'aria-required': boolean | undefined
}

export interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren // what belongs into it
  readonly error?: string | undefined // why it is wrong; it takes the place of the hint
  readonly isRequired?: boolean | undefined
  readonly aside?: ComponentChildren // at the right of the label: the type, a switch
  readonly children: (control: ControlProps) => ComponentChildren
}

/** A label, a control and what is said about it: `<Field label="Name">{control => <input {...control} />}</Field>`. */
export const Field = ({ label, hint, error, isRequired, aside, children }: FieldProps) => {
  const id = useId()
  const hasText = error !== undefined || (hint !== undefined && hint !== null)
  const name = (
    <label for={id}>
      {label}
      {isRequired && (
        <span class="field-required" aria-hidden="true">
          {' '}
          *
        </span>
      )}
    </label>
  )
  return (
    <div class="field">
      {aside === undefined ? (
        name
      ) : (
        <div class="field-head">
          {name}
          {aside}
        </div>
      )}
      {children({
        id,
        'aria-describedby': hasText ? `${id}-text` : undefined,
        'aria-invalid': error === undefined ? undefined : true,
        'aria-required': isRequired,
      })}
      {hasText && (
        <p id={`${id}-text`} class={error === undefined ? 'field-hint' : 'field-error'}>
          {error ?? hint}
        </p>
      )}
    </div>
  )
}

export interface TextInputFieldProps extends Omit<FieldProps, 'children'> {
  readonly value: string
  readonly rows?: number // of a text with several lines
  readonly isDisabled?: boolean
  readonly onValue: (value: string) => void
}

/** A field for a text. */
export const TextInputField = ({ value, rows, isDisabled = false, onValue, ...field }: TextInputFieldProps) => (
  <Field {...field}>
    {control => {
      const input = { ...control, value, disabled: isDisabled }
      return rows === undefined ? (
        <input {...input} onInput={({ currentTarget }) => onValue(currentTarget.value)} />
      ) : (
        <textarea {...input} rows={rows} onInput={({ currentTarget }) => onValue(currentTarget.value)} />
      )
    }}
  </Field>
)
