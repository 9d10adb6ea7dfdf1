import { Json } from '../wire/json/json.ts'
import { mapMembers, objectOf } from '../wire/json/map-members.ts'
import type { InvalidAnswer } from './difference.ts'

// 2025-06-18 has single choices, titled by `enumNames`. A multiple choice becomes one checkbox for each option, and the
// answer is converted back into a list; both follow from the question alone.

interface ChoiceOption {
  readonly value: Json
  readonly title: string
}

interface Checkbox extends ChoiceOption {
  readonly name: string
}

/** A field that accepts several options. */
interface MultipleChoice {
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

/** The answer with the checked boxes as lists, as the question asks for. */
export const foldChoices = (answer: Json, question: Json): Json | InvalidAnswer => {
  const schema = question.get('requestedSchema')
  if (!schema || !answer.get('action')?.isString('accept')) return answer
  const content = answer.get('content') ?? Json.empty
  // A client may support more than its revision and answer with a list.
  const folded = [...choicesOf(schema).values()].filter(({ field }) => content.get(field)?.kind !== 'array')
  if (folded.length === 0 || !content.isObject) return answer
  const names = new Set(folded.flatMap(({ boxes }) => boxes.map(({ name }) => name)))
  const lists: [string, Json][] = []
  for (const choice of folded) {
    const checked = choice.boxes.filter(({ name }) => content.get(name)?.asBoolean() === true)
    const isWithinBounds = checked.length >= choice.least && checked.length <= choice.most
    if (isWithinBounds && (choice.isRequired || isAnswered(choice, content)))
      lists.push([choice.field, Json.of(checked.map(({ value }) => value))])
    else if (!isWithinBounds && (choice.isRequired || checked.length > 0))
      return { problem: `${choice.title}: ${boundsText(choice)}` }
  }
  const rest = content.entries().filter(([name]) => !names.has(name))
  return lists.length === 0 && rest.length === content.entries().length
    ? answer
    : answer.with('content', objectOf([...rest, ...lists]))
}

const isAnswered = ({ boxes }: MultipleChoice, content: Json): boolean => boxes.some(({ name }) => content.has(name))

const choicesOf = (schema: Json): ReadonlyMap<string, MultipleChoice> => {
  const fields = schema.get('properties')?.entries() ?? []
  const required = new Set(
    schema
      .get('required')
      ?.elements()
      .map(name => name.asString()),
  )
  const taken = new Set(fields.map(([name]) => name))
  const choices = new Map<string, MultipleChoice>()
  for (const [field, property] of fields) {
    const options = multipleOptions(property)
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

const withCheckboxes = (properties: Json, choices: ReadonlyMap<string, MultipleChoice>): Json =>
  objectOf(
    properties.entries().flatMap(([field, property]): (readonly [string, Json])[] => {
      const choice = choices.get(field)
      return choice ? checkboxes(choice) : [[field, withEnumNames(property)]]
    }),
  )

const checkboxes = (choice: MultipleChoice): (readonly [string, Json])[] => {
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

/** Only on the first checkbox: those of a choice are shown together. */
const describe = (choice: MultipleChoice): string | undefined => {
  const description = choice.schema.get('description')?.asString()
  const isBound = choice.least > 0 || choice.most < choice.boxes.length
  return [description, isBound ? boundsText(choice) : undefined].filter(Boolean).join(' — ') || undefined
}

const boundsText = ({ least, most }: MultipleChoice): string => {
  if (least === most) return `choose exactly ${least}`
  const parts = [least > 0 && `at least ${least}`, Number.isFinite(most) && `at most ${most}`]
  return `choose ${parts.filter(Boolean).join(' and ')}`
}

const multipleOptions = (property: Json): readonly ChoiceOption[] | undefined => {
  const items = property.get('type')?.isString('array') ? property.get('items') : undefined
  if (!items) return undefined
  return (
    titledOptions(items) ??
    items
      .get('enum')
      ?.elements()
      .map(value => ({ value, title: textOf(value) }))
  )
}

/** The options of `oneOf` or `anyOf`, if all of them are constants. */
const titledOptions = (schema: Json): readonly ChoiceOption[] | undefined => {
  const options = (schema.get('oneOf') ?? schema.get('anyOf'))?.elements() ?? []
  const titled = options.flatMap(option => {
    const value = option.get('const')
    return value ? [{ value, title: option.get('title')?.asString() ?? textOf(value) }] : []
  })
  return titled.length > 0 && titled.length === options.length ? titled : undefined
}

const textOf = (value: Json): string => value.asString() ?? value.toString()

const withEnumNames = (property: Json): Json => {
  const options = titledOptions(property)
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
