import { useState } from 'preact/hooks'
import { formArguments } from '../../form/form-state.ts'
import { isObject, type JsonObject } from '../../mcp/messages.ts'
import { formKey, formOf, keepForm } from './forms.ts'
import { Definitions, ItemHead } from './item-head.tsx'
import { textMember } from './kinds.ts'
import { RequestSection } from './request-section.tsx'
import { type TextArgument, TextArguments } from './text-arguments.tsx'
import type { ItemDetailProps } from './tool-detail.tsx'

const NO_SCHEMA: JsonObject = {}

/** The texts that the user has entered for an item; kept like every form. */
export const useTexts = (key: string) => {
  const form = formOf(key, NO_SCHEMA)
  const values = Object.fromEntries(
    Object.entries(formArguments(form)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
  return { values, setValues: (next: Readonly<Record<string, string>>) => keepForm(key, { ...form, value: next }) }
}

/** A prompt: its arguments, and the messages that it makes of them. */
export const PromptDetail = ({ item, target }: ItemDetailProps) => {
  const list = argumentsOf(item.definition)
  const { values, setValues } = useTexts(formKey(target, 'prompts', item.key))
  const [isAttempted, setAttempted] = useState(false)
  const given = Object.fromEntries(Object.entries(values).filter(([, text]) => text !== ''))
  const isComplete = list.every(({ name, isRequired }) => !isRequired || (given[name] ?? '') !== '')
  return (
    <div class="item-detail">
      <ItemHead item={item} />
      <section class="arguments" aria-label="Arguments">
        <h3>{list.length === 0 ? 'No arguments' : 'Arguments'}</h3>
        <TextArguments
          list={list}
          values={values}
          isAttempted={isAttempted}
          completes={{ type: 'ref/prompt', name: item.key }}
          onChange={setValues}
        />
      </section>
      <RequestSection
        target={target}
        kind="prompts"
        subject={item.key}
        action="Get"
        method="prompts/get"
        params={{ name: item.key, arguments: given }}
        canSend={isComplete}
        onBlocked={() => setAttempted(true)}
      />
      <Definitions item={item} />
    </div>
  )
}

const argumentsOf = (definition: JsonObject): readonly TextArgument[] =>
  (Array.isArray(definition.arguments) ? definition.arguments : []).filter(isObject).map(argument => ({
    name: textMember(argument, 'name') ?? '',
    title: textMember(argument, 'title'),
    description: textMember(argument, 'description'),
    isRequired: argument.required === true,
  }))
