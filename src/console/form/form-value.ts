import { ExactNumber, stringifyExact } from '../exact-json.ts'
import { isObject } from '../mcp/messages.ts'

/** What a user typed that is no value of its field yet. It is part of the value, so that it moves and stays with it. */
export class InvalidText {
  readonly text: string
  readonly problem: string

  constructor(text: string, problem: string) {
    this.text = text
    this.problem = problem
  }
}

/** The way to a value: names of members and indexes of items. */
export type ValuePath = readonly (string | number)[]

/** A JSON pointer. */
export const pathKey = (path: ValuePath): string =>
  path.map(step => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** An object with members, not a number or a text that is kept as an object. */
export const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && !(value instanceof ExactNumber) && !(value instanceof InvalidText)

export const valueAt = (value: unknown, path: ValuePath): unknown => {
  let at = value
  for (const step of path) {
    if (Array.isArray(at)) at = at[Number(step)]
    else if (isMembers(at) && Object.hasOwn(at, String(step))) at = at[String(step)]
    else return undefined
  }
  return at
}

/** The value with another one at a path; undefined removes a member. Objects on the way are made. */
export const setValue = (value: unknown, path: ValuePath, next: unknown): unknown => {
  const [step, ...rest] = path
  if (step === undefined) return next
  if (typeof step === 'number') {
    const items: unknown[] = Array.isArray(value) ? [...value] : []
    items[step] = setValue(items[step], rest, next)
    return items
  }
  const members = isMembers(value) ? value : {}
  const inner = setValue(Object.hasOwn(members, step) ? members[step] : undefined, rest, next)
  const others = Object.entries(members)
  const entries: [string, unknown][] = Object.hasOwn(members, step)
    ? others.map(([name, each]) => [name, name === step ? inner : each])
    : [...others, [step, inner]]
  return Object.fromEntries(entries.filter(([, each]) => each !== undefined))
}

/** The object with a member under another name, in the same place. */
export const renameMember = (value: unknown, from: string, to: string): unknown =>
  isMembers(value)
    ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name === from ? to : name, each]))
    : value

/** The list with an item moved; out of its bounds nothing changes. */
export const moveItem = (items: readonly unknown[], from: number, to: number): readonly unknown[] => {
  if (to < 0 || to >= items.length) return items
  const moved = [...items]
  moved.splice(to, 0, ...moved.splice(from, 1))
  return moved
}

/** The value as it is sent: text that is no value of its field is sent as text, items without a value as null. */
export const sendableValue = (value: unknown): unknown => {
  if (value instanceof InvalidText) return value.text
  if (Array.isArray(value)) return value.map(item => sendableValue(item) ?? null)
  if (!isMembers(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, sendableValue(each)]))
}

export const valueText = (value: unknown, indent = '  '): string => stringifyExact(sendableValue(value), indent)
