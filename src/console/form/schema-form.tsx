import type { ComponentType } from 'preact'
import { useContext, useMemo } from 'preact/hooks'
import { type FieldShape, fieldShape } from './field-kind.ts'
import { FormContext, type FormContextValue, type FormFieldProps } from './form-context.ts'
import { type FormState, formProblems, shownProblems, switchMode, textError } from './form-state.ts'
import { pathKey, setValue } from './form-value.ts'
import { JsonEditor } from './json-editor.tsx'
import { ChoiceField, ListField, ObjectField } from './nested-fields.tsx'
import {
  BooleanField,
  FixedField,
  JsonField,
  NumberField,
  OptionsField,
  SeveralField,
  type SimpleFieldProps,
  TextField,
} from './simple-fields.tsx'

export interface SchemaFormProps {
  readonly schema: unknown // of an object
  readonly form: FormState
  readonly onChange: (form: FormState) => void
  readonly label: string
}

const DEEPEST = 12 // fields in each other; what is deeper is JSON

const FIELDS: Readonly<Record<FieldShape['kind'], ComponentType<SimpleFieldProps>>> = {
  text: TextField,
  number: NumberField,
  boolean: BooleanField,
  options: OptionsField,
  several: SeveralField,
  object: ObjectField,
  list: ListField,
  choice: ChoiceField,
  fixed: FixedField,
  json: JsonField,
}

const FormField = (props: FormFieldProps) => {
  const root = useContext(FormContext)?.root ?? { schema: {} }
  const shape = fieldShape(props.schema, root, props.value)
  const Content = props.path.length > DEEPEST ? JsonField : FIELDS[shape.kind]
  return <Content {...props} shape={shape} />
}

/** A form made from a JSON Schema, or the same value as JSON. */
export const SchemaForm = ({ schema, form, onChange, label }: SchemaFormProps) => {
  const root = useMemo(() => ({ schema }), [schema])
  const problems = useMemo(() => formProblems(schema, form), [schema, form])
  const shown = shownProblems(problems, form)
  const context: FormContextValue = {
    root,
    chosen: form.chosen,
    problems: shown,
    Field: FormField,
    set: (path, value) =>
      onChange({
        ...form,
        value: setValue(form.value, path, value),
        touched: new Set([...form.touched, pathKey(path)]),
        // Choices below a list belong to places: its items may have moved.
        chosen: Array.isArray(value) ? withoutBelow(form.chosen, pathKey(path)) : form.chosen,
      }),
    choose: (path, branch, value) =>
      onChange({
        ...form,
        value: setValue(form.value, path, value),
        chosen: new Map([...withoutBelow(form.chosen, pathKey(path)), [pathKey(path), branch]]),
      }),
  }
  if (form.mode === 'json')
    return (
      <JsonEditor
        label={label}
        text={form.text}
        error={textError(form)}
        problems={[...shown].map(([path, message]) => `${path === '' ? 'The arguments' : path}: ${message}`)}
        onInput={text => onChange({ ...form, text })}
      />
    )
  return (
    <FormContext.Provider value={context}>
      <FormField path={[]} schema={schema} label={label} value={form.value} isRequired />
    </FormContext.Provider>
  )
}

const withoutBelow = (chosen: ReadonlyMap<string, number>, key: string): ReadonlyMap<string, number> =>
  new Map([...chosen].filter(([each]) => !each.startsWith(`${key}/`)))

interface ModeSwitchProps {
  readonly form: FormState
  readonly onChange: (form: FormState) => void
}

const MODES = [
  { id: 'form', label: 'Form' },
  { id: 'json', label: 'JSON' },
] as const

/** Chooses between fields and JSON; the value stays. A text that is no JSON must be repaired first. */
export const ModeSwitch = ({ form, onChange }: ModeSwitchProps) => (
  <div class="segments" role="group" aria-label="Enter as">
    {MODES.map(({ id, label }) => (
      <button
        key={id}
        type="button"
        aria-pressed={form.mode === id}
        disabled={form.mode !== id && textError(form) !== undefined}
        title={form.mode !== id && textError(form) ? 'Repair the JSON first' : undefined}
        onClick={() => onChange(switchMode(form, id))}
      >
        {label}
      </button>
    ))}
  </div>
)
