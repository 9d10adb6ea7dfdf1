import { readParamHeaders } from '../protocol/param-headers.ts'
import type { Json } from '../wire/json/json.ts'
import type { RuleName } from './rules.ts'

/** A broken rule and what was seen. */
export interface Flaw {
  readonly rule: RuleName
  readonly seen: string
}

export type DoctorList = 'tools' | 'prompts' | 'resources' | 'resourceTemplates'

const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/

/** Checks the items of one list. */
export const checkItems = (list: DoctorList, items: readonly Json[]): Flaw[] => [
  ...items.flatMap((item, at) => CHECKS[list](item, labelOf(item, at))),
  ...repeatedNames(list, items),
]

const checkTool = (tool: Json, label: string): Flaw[] => {
  const name = tool.get('name')?.asString()
  const input = tool.get('inputSchema')
  const output = tool.get('outputSchema')
  const headers = input ? readParamHeaders(input) : undefined
  return [
    ...flaw(name === undefined || !TOOL_NAME.test(name), 'tool-name', `the name of ${label}`),
    ...flaw(
      !input?.get('type')?.isString('object'),
      'input-schema',
      `${label} has ${input ? `inputSchema.type ${input.get('type')?.toString() ?? 'absent'}` : 'no inputSchema'}`,
    ),
    ...flaw(
      output !== undefined && !output.isObject,
      'output-schema',
      `the outputSchema of ${label} is ${output?.kind}`,
    ),
    ...(headers?.kind === 'invalid' ? [{ rule: 'param-headers', seen: `${label}: ${headers.reason}` } as const] : []),
  ]
}

const checkNamed = (item: Json, label: string): Flaw[] =>
  flaw(!item.get('name')?.asString(), 'item-name', `${label} has no name`)

const checkResource = (resource: Json, label: string): Flaw[] => [
  ...checkNamed(resource, label),
  ...flaw(
    !SCHEME.test(resource.get('uri')?.asString() ?? ''),
    'resource-uri',
    `${label} has the uri ${resource.get('uri')?.toString() ?? '(none)'}`,
  ),
]

const CHECKS: Readonly<Record<DoctorList, (item: Json, label: string) => Flaw[]>> = {
  tools: checkTool,
  prompts: checkNamed,
  resources: checkResource,
  resourceTemplates: checkNamed,
}

const flaw = (isBroken: boolean, rule: RuleName, seen: string): Flaw[] => (isBroken ? [{ rule, seen }] : [])

const KEYS: Readonly<Record<DoctorList, string>> = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  resourceTemplates: 'uriTemplate',
}

const repeatedNames = (list: DoctorList, items: readonly Json[]): Flaw[] => {
  const names = items.map(item => item.get(KEYS[list])?.asString()).filter(name => name !== undefined)
  const repeated = [...new Set(names.filter((name, at) => names.indexOf(name) !== at))]
  return repeated.map(name => ({ rule: 'unique-names', seen: `${list} has ${JSON.stringify(name)} more than once` }))
}

const labelOf = (item: Json, at: number): string => {
  const name = (item.get('name') ?? item.get('uri'))?.asString()
  return name === undefined ? `item ${at + 1}` : JSON.stringify(name)
}
