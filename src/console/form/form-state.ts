import { type JsonTextError, parseExact } from '../exact-json.ts'
import { isMembers, pathKey, sendableValue, valueText } from './form-value.ts'
import { initialValue } from './initial-value.ts'
import { type ChosenBranches, type SchemaProblem, validate } from './validate.ts'

/** A form while the user fills it in. It is kept when another form is shown. */
export interface FormState {
  readonly value: unknown
  readonly chosen: ChosenBranches
  readonly touched: ReadonlySet<string> // places that the user has changed
  readonly isAttempted: boolean // the user has tried to send it: what is missing is shown, too
  readonly mode: 'form' | 'json'
  readonly text: string // of the mode `json`
}

export const createForm = (schema: unknown, value: unknown = initialValue(schema, { schema })): FormState => ({
  value: value ?? {},
  chosen: new Map(),
  touched: new Set(),
  isAttempted: false,
  mode: 'form',
  text: '',
})

/** Why the text is no JSON object; undefined in the mode `form`. */
export const textError = ({ mode, text }: FormState): JsonTextError | Error | undefined => {
  if (mode === 'form') return undefined
  const read = readObject(text)
  return 'error' in read ? read.error : undefined
}

const readObject = (text: string): { readonly value: unknown } | { readonly error: Error } => {
  try {
    const value = text.trim() === '' ? {} : parseExact(text)
    return isMembers(value) ? { value } : { error: new Error('Expected an object: { "name": value }') }
  } catch (error) {
    return { error: error as Error }
  }
}

/** What the user has entered; the last valid value while the text is no JSON. */
const formValue = (form: FormState): unknown => {
  if (form.mode === 'form') return form.value
  const read = readObject(form.text)
  return 'value' in read ? read.value : form.value
}

/** Shows the same value as fields or as JSON. A text that is no JSON stays as it is. */
export const switchMode = (form: FormState, mode: FormState['mode']): FormState => {
  if (mode === form.mode || textError(form)) return form
  if (mode === 'json') return { ...form, mode, text: valueText(form.value) }
  return { ...form, mode, value: formValue(form), chosen: new Map() }
}

/** All problems of what the user has entered. */
export const formProblems = (schema: unknown, form: FormState): readonly SchemaProblem[] =>
  validate(schema, formValue(form), { schema }, form.chosen)

/** The problems to show now, by place: what is missing only after the user was there, or tried to send. */
export const shownProblems = (problems: readonly SchemaProblem[], form: FormState): ReadonlyMap<string, string> => {
  const shown = new Map<string, string>()
  for (const { path, message, isMissing } of problems) {
    const key = pathKey(path)
    const isShown = !isMissing || form.isAttempted || form.touched.has(key)
    if (isShown && !shown.has(key)) shown.set(key, message)
  }
  return shown
}

/** The arguments to send. */
export const formArguments = (form: FormState): Readonly<Record<string, unknown>> => {
  const value = sendableValue(formValue(form))
  return isMembers(value) ? value : {}
}
