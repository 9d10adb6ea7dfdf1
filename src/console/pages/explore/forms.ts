import { signal } from '@preact/signals'
import { createForm, type FormState } from '../../form/form-state.ts'

const MOST = 300

/** What the user has entered for each item of each target; kept until the page is closed. */
const forms = signal<ReadonlyMap<string, FormState>>(new Map())

/** The form of an item: as the user left it, or a new one. */
export const formOf = (key: string, schema: unknown): FormState => {
  const kept = forms.value.get(key)
  if (kept) return kept
  const known = fresh.get(key)
  if (known && known.schema === schema) return known.form
  const form = createForm(schema)
  fresh.clear() // only the one that is shown
  fresh.set(key, { schema, form })
  return form
}
const fresh = new Map<string, { readonly schema: unknown; readonly form: FormState }>()

export const keepForm = (key: string, form: FormState): void => {
  const next = new Map(forms.peek())
  next.delete(key) // it becomes the newest
  next.set(key, form)
  const [oldest] = next.keys()
  if (next.size > MOST && oldest !== undefined) next.delete(oldest)
  forms.value = next
}

export const forgetForm = (key: string): void => {
  const next = new Map(forms.peek())
  next.delete(key)
  forms.value = next
}

export const formKey = (target: string, kind: string, name: string): string => [target, kind, name].join('\n')
