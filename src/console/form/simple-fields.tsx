import type { ComponentChildren } from 'preact'
import { useContext, useState } from 'preact/hooks'
import { isSameJson, parseExact, readNumber } from '../exact-json.ts'
import { Button } from '../parts/button.tsx'
import { Field } from '../parts/field.tsx'
import { Select } from '../parts/select.tsx'
import { type FieldShape, optionIndex } from './field-kind.ts'
import { FormContext, type FormFieldProps } from './form-context.ts'
import { InvalidText, pathKey, valueText } from './form-value.ts'
import { textFormat } from './formats.ts'
import { typeText } from './type-text.ts'

export interface SimpleFieldProps extends FormFieldProps {
  readonly shape: FieldShape
}

const NOT_SENT = 'not sent'
const MOST_OPTIONS = 2000

/** The label, the type, the description and the problem around the control of a field. */
const Labelled = ({
  props,
  aside,
  children,
}: {
  readonly props: SimpleFieldProps
  readonly aside?: ComponentChildren
  readonly children: Parameters<typeof Field>[0]['children']
}) => {
  const { path, shape, label, isRequired, isBare, value } = props
  const form = useContext(FormContext)
  const { title, description, deprecated } = shape.schema
  const texts = [title !== label && title, description, deprecated === true && 'Deprecated', shape.note]
  const hint = texts.filter(text => typeof text === 'string' && text !== '').join(' · ')
  const toggleNull = (): void => form?.set(path, value === null ? undefined : null)
  return (
    <div class={isBare ? 'form-bare' : undefined} data-path={pathKey(path)}>
      <Field
        label={label}
        isRequired={isRequired}
        hint={hint === '' ? undefined : hint}
        error={form?.problems.get(pathKey(path))}
        aside={
          <>
            <span class="form-type">{typeText(shape)}</span>
            {aside}
            {shape.isNullable && (
              <label class="form-null">
                <input type="checkbox" checked={value === null} onChange={toggleNull} aria-label={`${label} is null`} />
                null
              </label>
            )}
          </>
        }
      >
        {children}
      </Field>
    </div>
  )
}

export const TextField = (props: SimpleFieldProps) => {
  const { path, shape, label, isRequired = false, value } = props
  const form = useContext(FormContext)
  const format = textFormat(shape.schema.format)
  const isSet = typeof value === 'string'
  const shown = isSet ? value : value instanceof InvalidText ? value.text : ''
  // An optional text that is emptied is not sent; the button sends an empty one.
  const onInput = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void =>
    form?.set(path, currentTarget.value === '' && !isRequired ? undefined : currentTarget.value)
  const common = {
    value: shown,
    onInput,
    disabled: value === null,
    placeholder:
      value === null ? 'null' : isSet ? '(empty text)' : isRequired ? format?.expected : (format?.expected ?? NOT_SENT),
    spellcheck: false,
    autocomplete: 'off',
  }
  const canBeEmpty = !isRequired && value === undefined && format === undefined
  return (
    <Labelled
      props={props}
      aside={
        canBeEmpty && (
          <button
            type="button"
            class="form-empty"
            title={`Send an empty text as ${label}`}
            onClick={() => form?.set(path, '')}
          >
            send “”
          </button>
        )
      }
    >
      {control =>
        format?.isDay ? (
          <input {...control} {...common} type="date" />
        ) : format ? (
          <input {...control} {...common} type="text" />
        ) : (
          <textarea {...control} {...common} rows={1} class="form-text" />
        )
      }
    </Labelled>
  )
}

export const NumberField = (props: SimpleFieldProps) => {
  const { path, shape, value } = props
  const form = useContext(FormContext)
  const isInteger = shape.schema.type === 'integer'
  const problem = isInteger ? 'Expected a whole number' : 'Expected a number, such as 1.5'
  const text = value instanceof InvalidText ? value.text : value === undefined || value === null ? '' : String(value)
  const onInput = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void => {
    const typed = currentTarget.value
    form?.set(path, typed === '' ? undefined : (readNumber(typed.trim()) ?? new InvalidText(typed, problem)))
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key]
    if (by === undefined || !(typeof value === 'number' || value === undefined)) return
    event.preventDefault()
    const step = typeof shape.schema.multipleOf === 'number' ? shape.schema.multipleOf : 1
    form?.set(path, Number(((value ?? 0) + by * step).toPrecision(15)))
  }
  return (
    <Labelled props={props}>
      {control => (
        <input
          {...control}
          type="text"
          inputMode={isInteger ? 'numeric' : 'decimal'}
          class="form-number"
          value={text}
          disabled={value === null}
          placeholder={value === null ? 'null' : props.isRequired ? undefined : NOT_SENT}
          autocomplete="off"
          onInput={onInput}
          onKeyDown={onKeyDown}
        />
      )}
    </Labelled>
  )
}

const TRUTH = [
  { value: 'true', label: 'true' },
  { value: 'false', label: 'false' },
]

export const BooleanField = (props: SimpleFieldProps) => {
  const { path, isRequired = false, value, label } = props
  const form = useContext(FormContext)
  const unset = { value: '', label: isRequired ? 'choose…' : NOT_SENT }
  return (
    <Labelled props={props}>
      {control => (
        <Select
          {...control}
          label={props.isBare ? label : undefined}
          value={typeof value === 'boolean' ? String(value) : ''}
          disabled={value === null}
          options={isRequired && typeof value === 'boolean' ? TRUTH : [unset, ...TRUTH]}
          onChange={next => form?.set(path, next === '' ? undefined : next === 'true')}
        />
      )}
    </Labelled>
  )
}

export const OptionsField = (props: SimpleFieldProps) => {
  const { path, shape, isRequired = false, value } = props
  const form = useContext(FormContext)
  const options = (shape.options ?? []).slice(0, MOST_OPTIONS)
  const at = value === undefined ? -1 : optionIndex(options, value)
  const other = value !== undefined && value !== null && at < 0 ? [{ value: 'other', label: valueText(value, '') }] : []
  return (
    <Labelled props={props}>
      {control => (
        <Select
          {...control}
          value={at >= 0 ? String(at) : (other[0]?.value ?? '')}
          disabled={value === null}
          options={[
            { value: '', label: isRequired ? 'choose…' : NOT_SENT, disabled: isRequired },
            ...other,
            ...options.map((option, index) => ({ value: String(index), label: option.label })),
          ]}
          onChange={next => next !== 'other' && form?.set(path, next === '' ? undefined : options[Number(next)]?.value)}
        />
      )}
    </Labelled>
  )
}

export const FixedField = (props: SimpleFieldProps) => {
  const { path, shape, isRequired = false, value } = props
  const form = useContext(FormContext)
  const isSent = value !== undefined
  return (
    <Labelled props={props}>
      {control => (
        <label class="form-fixed">
          <input
            {...control}
            type="checkbox"
            checked={isSent}
            disabled={isRequired && isSent}
            onChange={() => form?.set(path, isSent ? undefined : shape.schema.const)}
          />
          <code>{valueText(shape.schema.const, '')}</code>
        </label>
      )}
    </Labelled>
  )
}

/** JSON for what has no form. The text stays as it was typed. */
export const JsonField = (props: SimpleFieldProps) => {
  const { path, value, isRequired = false } = props
  const form = useContext(FormContext)
  const [typed, setTyped] = useState('')
  const shown =
    value instanceof InvalidText
      ? value.text
      : isTextOf(typed, value)
        ? typed
        : value === undefined
          ? ''
          : valueText(value)
  const onInput = (text: string): void => {
    setTyped(text)
    form?.set(path, text.trim() === '' ? undefined : readJson(text))
  }
  return (
    <Labelled props={props}>
      {control => (
        <textarea
          {...control}
          rows={Math.min(12, Math.max(2, shown.split('\n').length))}
          class="form-text mono"
          value={shown}
          spellcheck={false}
          placeholder={isRequired ? 'JSON' : `JSON, ${NOT_SENT}`}
          onInput={({ currentTarget }) => onInput(currentTarget.value)}
        />
      )}
    </Labelled>
  )
}

const readJson = (text: string): unknown => {
  try {
    return parseExact(text)
  } catch (error) {
    return new InvalidText(text, (error as Error).message)
  }
}

const isTextOf = (text: string, value: unknown): boolean => {
  const read = text.trim() === '' ? undefined : readJson(text)
  return !(read instanceof InvalidText) && isSameJson(read, value)
}

export const SeveralField = (props: SimpleFieldProps) => {
  const { path, shape, value, isRequired = false } = props
  const form = useContext(FormContext)
  const chosen: readonly unknown[] = Array.isArray(value) ? value : []
  const toggle = (option: unknown, isOn: boolean): void => {
    const next = isOn ? chosen.filter(each => !isSameJson(each, option)) : [...chosen, option]
    form?.set(path, next.length === 0 && !isRequired ? undefined : next)
  }
  return (
    <Labelled props={props}>
      {({ id: _id, ...control }) => (
        <div class="form-boxes" role="group" aria-label={props.label} aria-describedby={control['aria-describedby']}>
          {(shape.options ?? []).map(({ value: option, label }) => {
            const isOn = chosen.some(each => isSameJson(each, option))
            return (
              <label key={label}>
                <input type="checkbox" checked={isOn} onChange={() => toggle(option, isOn)} />
                {label}
              </label>
            )
          })}
          {value !== undefined && !isRequired && (
            <Button kind="quiet" onClick={() => form?.set(path, undefined)}>
              Do not send
            </Button>
          )}
        </div>
      )}
    </Labelled>
  )
}
