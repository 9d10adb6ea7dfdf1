import { useId, useState } from 'preact/hooks'
import type { JsonObject } from '../../mcp/messages.ts'
import { Field } from '../../parts/field.tsx'
import { useCompletion } from './completion.ts'

/** An argument that is a text: of a prompt, or a variable of a URI template. */
export interface TextArgument {
  readonly name: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly isRequired: boolean
}

export interface TextArgumentsProps {
  readonly list: readonly TextArgument[]
  readonly values: Readonly<Record<string, string>>
  readonly isAttempted: boolean // what is missing is shown
  readonly completes: JsonObject // the reference that completion/complete takes
  readonly onChange: (values: Readonly<Record<string, string>>) => void
}

/** Fields for texts, completed by the server while the user types. */
export const TextArguments = ({ list, values, isAttempted, completes, onChange }: TextArgumentsProps) => (
  <div class="form-root">
    {list.map(argument => (
      <CompletedField
        key={argument.name}
        argument={argument}
        values={values}
        isAttempted={isAttempted}
        completes={completes}
        onInput={text => onChange({ ...values, [argument.name]: text })}
      />
    ))}
  </div>
)

interface CompletedFieldProps extends Omit<TextArgumentsProps, 'list' | 'onChange'> {
  readonly argument: TextArgument
  readonly onInput: (text: string) => void
}

const CompletedField = ({ argument, values, isAttempted, completes, onInput }: CompletedFieldProps) => {
  const { name, title, description, isRequired } = argument
  const [isFocused, setFocused] = useState(false)
  const id = useId()
  const value = Object.hasOwn(values, name) ? (values[name] ?? '') : ''
  const proposed = useCompletion(completes, name, value, values, isFocused)
  const hint = [title !== name && title, description].filter(Boolean).join(' · ')
  return (
    <Field
      label={name}
      isRequired={isRequired}
      hint={hint === '' ? undefined : hint}
      error={isAttempted && isRequired && value === '' ? 'Required' : undefined}
      aside={proposed.length > 0 && isFocused ? <span class="form-type">{proposed.length} proposed</span> : undefined}
    >
      {control => (
        <>
          <input
            {...control}
            type="text"
            list={id}
            value={value}
            autocomplete="off"
            spellcheck={false}
            placeholder={isRequired ? undefined : 'not sent'}
            onFocus={() => setFocused(true)}
            onBlur={() => setFocused(false)}
            onInput={({ currentTarget }) => onInput(currentTarget.value)}
          />
          <datalist id={id}>
            {proposed.map(text => (
              <option key={text} value={text} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  )
}
