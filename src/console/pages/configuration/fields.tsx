import { useEffect, useRef, useState } from 'preact/hooks'
import type { ConfigIssue } from '../../../admin/api/config.ts'
import { isObject } from '../../mcp/messages.ts'
import { Field } from '../../parts/field.tsx'
import { Select } from '../../parts/select.tsx'
import { isEqual } from './edits.ts'
import { isHidden } from './hidden.ts'
import { JsonValueField } from './json-value-field.tsx'
import { PairsField } from './pairs-field.tsx'
import { type ConfigSchema, defaultText, groupIn, kindOf } from './schema.ts'

/** One value of the configuration with its place. */
export interface ValueFieldProps {
  readonly name: string
  readonly path: readonly string[]
  readonly schema: ConfigSchema
  readonly value: unknown
  readonly issues: readonly ConfigIssue[]
  readonly onChange: (value: unknown) => void // undefined: left out of the file
}

/** What is wrong with a value or with a part of it. */
const errorAt = (issues: readonly ConfigIssue[], path: readonly string[]): string | undefined => {
  const found = issues.find(issue => path.every((step, at) => String(issue.path[at]) === step))
  const rest = found?.path.slice(path.length).join('.')
  return found && (rest ? `${rest}: ${found.message}` : found.message)
}

/** The control for a value, chosen by its schema; a value of another form is edited as JSON. */
export const ValueField = (props: ValueFieldProps) => {
  const { name, path, schema, value, issues, onChange } = props
  const kind = kindOf(schema)
  const error = errorAt(issues, path)
  const hint = schema.description
  const given = defaultText(schema.default)
  if (kind === 'group' || kind === 'switched-group') return <GroupField {...props} />
  if (kind === 'pairs' && (value === undefined || isObject(value)))
    return <PairsField name={name} hint={hint} error={error} value={value ?? {}} onChange={onChange} />
  if (kind === 'lines' && (value === undefined || isTexts(value)))
    return (
      <Field label={name} hint={hint ? `${hint} One per line.` : 'One per line.'} error={error}>
        {control => <LinesInput control={control} value={value ?? []} onChange={onChange} />}
      </Field>
    )
  if (kind === 'choice' || kind === 'flag') {
    const options = kind === 'flag' ? ['true', 'false'] : (schema.enum ?? [])
    return (
      <Field label={name} hint={hint} error={error}>
        {control => (
          <Select
            {...control}
            value={value === undefined ? '' : String(value)}
            options={[
              { value: '', label: given === undefined ? 'not set' : `${given} (default)` },
              ...options.map(option => ({ value: option, label: option })),
            ]}
            onChange={next => onChange(next === '' ? undefined : kind === 'flag' ? next === 'true' : next)}
          />
        )}
      </Field>
    )
  }
  if (kind === 'number' && (value === undefined || typeof value === 'number'))
    return (
      <Field label={name} hint={hint} error={error}>
        {control => (
          <input
            {...control}
            type="number"
            min={schema.minimum}
            placeholder={given}
            value={value ?? ''}
            onInput={({ currentTarget: { value: text } }) => onChange(text === '' ? undefined : Number(text))}
          />
        )}
      </Field>
    )
  if (kind === 'text' && (value === undefined || typeof value === 'string'))
    return (
      <Field label={name} hint={hint} error={error}>
        {control => <TextInput {...{ control, value, given, onChange }} />}
      </Field>
    )
  return <JsonValueField name={name} hint={hint} error={error} value={value} onChange={onChange} />
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string' && !item.includes('\n'))

interface TextInputProps {
  readonly control: object
  readonly value: string | undefined
  readonly given: string | undefined
  readonly onChange: (value: unknown) => void
}

const TextInput = ({ control, value, given, onChange }: TextInputProps) => (
  <input
    {...control}
    class="mono"
    spellcheck={false}
    autocomplete="off"
    placeholder={given}
    title={isHidden(value) ? 'A secret of the file: it is kept unless you replace it' : undefined}
    value={value ?? ''}
    onInput={({ currentTarget: { value: text } }) => onChange(text === '' ? undefined : text)}
  />
)

interface LinesInputProps {
  readonly control: object
  readonly value: readonly string[]
  readonly onChange: (value: unknown) => void
}

/** A list of texts, one per line. What the user types stays as it is until another value comes from outside. */
const LinesInput = ({ control, value, onChange }: LinesInputProps) => {
  const [text, setText] = useState(value.join('\n'))
  const sent = useRef(value)
  useEffect(() => {
    if (isEqual(sent.current, value)) return
    sent.current = value
    setText(value.join('\n'))
  }, [value])
  return (
    <textarea
      {...control}
      class="mono"
      spellcheck={false}
      rows={Math.min(8, Math.max(2, text.split('\n').length))}
      value={text}
      onInput={({ currentTarget }) => {
        setText(currentTarget.value)
        const lines = currentTarget.value.replace(/\n+$/, '').split('\n')
        sent.current = currentTarget.value === '' ? [] : lines
        onChange(sent.current.length > 0 ? sent.current : undefined)
      }}
    />
  )
}

/** Several values under one key, folded unless some are set; `oauth` can also be switched off as a whole. */
const GroupField = ({ name, path, schema, value, issues, onChange }: ValueFieldProps) => {
  const group = schema.properties ? schema : groupIn(schema)
  const constants = (schema.anyOf ?? []).flatMap(({ const: each }) => (each === undefined ? [] : [each]))
  const members = isObject(value) ? value : {}
  const isOff = value !== undefined && !isObject(value)
  const error = errorAt(issues, path)
  return (
    <details class="config-group" open={value !== undefined || error !== undefined}>
      <summary>
        <span class="config-group-name">{name}</span>{' '}
        <span class="quiet">{schema.description ?? group?.description}</span>
      </summary>
      {constants.map(each => (
        <label key={String(each)} class="config-check">
          <input
            type="checkbox"
            checked={isOff}
            onChange={({ currentTarget }) => onChange(currentTarget.checked ? each : undefined)}
          />
          {name}: {String(each)}
        </label>
      ))}
      {!isOff && (
        <FieldList
          {...{ path, issues }}
          fields={Object.entries(group?.properties ?? {})}
          value={members}
          onChange={next => onChange(Object.keys(next).length > 0 ? next : undefined)}
        />
      )}
    </details>
  )
}

interface FieldListProps {
  readonly path: readonly string[]
  readonly fields: readonly (readonly [string, ConfigSchema])[]
  readonly value: Readonly<Record<string, unknown>>
  readonly issues: readonly ConfigIssue[]
  readonly onChange: (value: Readonly<Record<string, unknown>>) => void
}

/** The fields of one object. */
export const FieldList = ({ path, fields, value, issues, onChange }: FieldListProps) => (
  <div class="config-fields">
    {fields.map(([name, schema]) => (
      <ValueField
        key={name}
        name={name}
        path={[...path, name]}
        schema={schema}
        value={value[name]}
        issues={issues}
        onChange={next => {
          const { [name]: _, ...others } = value
          if (next === undefined) onChange(others)
          else onChange(name in value ? { ...value, [name]: next } : { ...others, [name]: next })
        }}
      />
    ))}
  </div>
)
