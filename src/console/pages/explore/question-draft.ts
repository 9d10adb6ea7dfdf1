import { type Signal, signal } from '@preact/signals'
import type { OpenQuestion } from './calls.ts'

/** What the user has entered for each question that waits: it is kept while another call or page is shown. */
const drafts = new WeakMap<OpenQuestion, Map<string, Signal<unknown>>>()

/** A value of the form of a question, and what changes it. */
export const useDraft = <Value>(
  open: OpenQuestion,
  name: string,
  first: () => Value,
): readonly [Value, (next: Value) => void] => {
  const values = drafts.get(open) ?? new Map<string, Signal<unknown>>()
  drafts.set(open, values)
  const kept = (values.get(name) ?? signal<unknown>(first())) as Signal<Value>
  values.set(name, kept)
  return [
    kept.value,
    next => {
      kept.value = next
    },
  ]
}
