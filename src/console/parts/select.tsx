import type { ControlProps } from './field.tsx'

export interface SelectOption<Value extends string> {
  readonly value: Value
  readonly label: string
  readonly disabled?: boolean | undefined
}

export interface SelectProps<Value extends string> extends Partial<ControlProps> {
  readonly label?: string | undefined // its name, unless it stands in a Field
  readonly value: Value
  readonly options: readonly SelectOption<Value>[]
  readonly onChange: (value: Value) => void
  readonly disabled?: boolean | undefined
}

/** A choice from a list. */
export const Select = <Value extends string>({ label, value, options, onChange, ...rest }: SelectProps<Value>) => (
  <select
    {...rest}
    class="select"
    aria-label={label}
    title={label}
    value={value}
    onChange={({ currentTarget }) => onChange(currentTarget.value as Value)}
  >
    {options.map(option => (
      <option key={option.value} value={option.value} disabled={option.disabled} selected={option.value === value}>
        {option.label}
      </option>
    ))}
  </select>
)
