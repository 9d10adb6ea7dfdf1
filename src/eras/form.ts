import { Json } from '../wire/json/json.ts'
import { mapMembers, objectOf } from '../wire/json/map-members.ts'
import type { InvalidAnswer } from './difference.ts'

// 2025-06-18 knows choices of one, named by `enumNames`. A choice of several is shown as one checkbox for each
// option, and what is ticked is gathered again; how, follows from the question alone.

interface Option {
  readonly value: Json
  readonly title: string
}

interface Checkbox extends Option {
  readonly name: string
}

/** A field of which several options may be chosen. */
interface Choice {
  readonly field: string
  readonly title: string
  readonly schema: Json
  readonly boxes: readonly Checkbox[]
  readonly isRequired: boolean
  readonly least: number
  readonly most: number
}

/** The params of a form with titled choices in the old spelling and checkboxes for choices of several. */
export const asPlainForm = (params: Json): Json => {
  const schema = params.get('requestedSchema')
  const properties = schema?.get('properties')
  if (!schema || !properties?.isObject) return params
  const choices = choicesOf(schema)
  const plain = choices.size === 0 ? mapMembers(properties, withEnumNames) : withCheckboxes(properties, choices)
  if (plain === properties) return params
  const required = schema.get('required')
  const shown = schema.with('properties', plain)
  return params.with(
    'requestedSchema',
    required
      ? shown.with(
          'required',
          required.map(name => (choices.has(name.asString() ?? '') ? undefined : name)),
        )
      : shown,
  )
}

/** The answer with what was ticked gathered in lists, as the question asked for. */
export const foldChoices = (answer: Json, question: Json): Json | InvalidAnswer => {
  const schema = question.get('requestedSchema')
  if (!schema || !answer.get('action')?.isString('accept')) return answer
  const content = answer.get('content') ?? Json.empty
  // A client ahead of its revision may have answered with a list right away.
  const folded = [...choicesOf(schema).values()].filter(({ field }) => content.get(field)?.kind !== 'array')
  if (folded.length === 0 || !content.isObject) return answer
  const names = new Set(folded.flatMap(({ boxes }) => boxes.map(({ name }) => name)))
  const lists: [string, Json][] = []
  for (const choice of folded) {
    const ticked = choice.boxes.filter(({ name }) => content.get(name)?.asBoolean() === true)
    const isFitting = ticked.length >= choice.least && ticked.length <= choice.most
    if (isFitting && (choice.isRequired || isAnswered(choice, content)))
      lists.push([choice.field, Json.of(ticked.map(({ value }) => value))])
    else if (!isFitting && (choice.isRequired || ticked.length > 0))
      return { problem: `${choice.title}: ${bounds(choice)}` }
  }
  const rest = content.entries().filter(([name]) => !names.has(name))
  return lists.length === 0 && rest.length === content.entries().length
    ? answer
    : answer.with('content', objectOf([...rest, ...lists]))
}

const isAnswered = ({ boxes }: Choice, content: Json): boolean => boxes.some(({ name }) => content.has(name))

const choicesOf = (schema: Json): ReadonlyMap<string, Choice> => {
  const fields = schema.get('properties')?.entries() ?? []
  const required = new Set(
    schema
      .get('required')
      ?.elements()
      .map(name => name.asString()),
  )
  const taken = new Set(fields.map(([name]) => name))
  const choices = new Map<string, Choice>()
  for (const [field, property] of fields) {
    const options = severalOf(property)
    if (!options) continue
    choices.set(field, {
      field,
      title: property.get('title')?.asString() ?? field,
      schema: property,
      boxes: options.map((option, i) => ({ ...option, name: freeName(`${field} — ${option.title}`, i, taken) })),
      isRequired: required.has(field),
      least: property.get('minItems')?.asNumber() ?? 0,
      most: property.get('maxItems')?.asNumber() ?? Number.POSITIVE_INFINITY,
    })
  }
  return choices
}

/** Options may share a title; their checkboxes must not share a name, nor take that of another field. */
const freeName = (wanted: string, i: number, taken: Set<string>): string => {
  let name = taken.has(wanted) ? `${wanted} (${i + 1})` : wanted
  while (taken.has(name)) name += '′'
  taken.add(name)
  return name
}

const withCheckboxes = (properties: Json, choices: ReadonlyMap<string, Choice>): Json =>
  objectOf(
    properties.entries().flatMap(([field, property]): (readonly [string, Json])[] => {
      const choice = choices.get(field)
      return choice ? checkboxes(choice) : [[field, withEnumNames(property)]]
    }),
  )

const checkboxes = (choice: Choice): (readonly [string, Json])[] => {
  const chosen = choice.schema.get('default')
  const values = new Set(chosen?.elements().map(textOf))
  return choice.boxes.map(({ name, title, value }, i) => [
    name,
    Json.of({
      type: 'boolean',
      title: `${choice.title} — ${title}`,
      description: i === 0 ? describe(choice) : undefined,
      default: chosen ? values.has(textOf(value)) : undefined,
    }),
  ])
}

/** Once is enough: the checkboxes of a choice stand together. */
const describe = (choice: Choice): string | undefined => {
  const description = choice.schema.get('description')?.asString()
  const isBound = choice.least > 0 || choice.most < choice.boxes.length
  return [description, isBound ? bounds(choice) : undefined].filter(Boolean).join(' — ') || undefined
}

const bounds = ({ least, most }: Choice): string => {
  if (least === most) return `choose exactly ${least}`
  const parts = [least > 0 && `at least ${least}`, Number.isFinite(most) && `at most ${most}`]
  return `choose ${parts.filter(Boolean).join(' and ')}`
}

const severalOf = (property: Json): readonly Option[] | undefined => {
  const items = property.get('type')?.isString('array') ? property.get('items') : undefined
  if (!items) return undefined
  return (
    titledOf(items) ??
    items
      .get('enum')
      ?.elements()
      .map(value => ({ value, title: textOf(value) }))
  )
}

/** The options of `oneOf` or `anyOf`, if all of them are constants. */
const titledOf = (schema: Json): readonly Option[] | undefined => {
  const options = (schema.get('oneOf') ?? schema.get('anyOf'))?.elements() ?? []
  const titled = options.flatMap(option => {
    const value = option.get('const')
    return value ? [{ value, title: option.get('title')?.asString() ?? textOf(value) }] : []
  })
  return titled.length > 0 && titled.length === options.length ? titled : undefined
}

const textOf = (value: Json): string => value.asString() ?? value.toString()

const withEnumNames = (property: Json): Json => {
  const options = titledOf(property)
  if (!options) return property
  return property
    .without('oneOf', 'anyOf')
    .with(
      'enum',
      options.map(({ value }) => value),
    )
    .with(
      'enumNames',
      options.map(({ title }) => title),
    )
}
