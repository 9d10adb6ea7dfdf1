import { headerValueError } from '../../../std/header-text.ts'
import type { Json } from '../../../wire/json/json.ts'
import type { OperationPlan, ParameterPlan } from '../plan.ts'
import { writeBody } from './write-body.ts'
import { percentEncode, writeHeaderValue, writePathValue, writeQuery } from './write-value.ts'

/** A request to an API, without the headers of the entry. */
export interface ApiRequest {
  readonly method: string
  readonly url: string
  readonly publicUrl: string // without the query of the entry, which may hold a key
  readonly headers: readonly string[] // flat: name, value, name, value
  readonly body: Buffer | null
}

/** Where requests go. */
export interface ApiBase {
  readonly url: string // without a slash at its end
  readonly query: Readonly<Record<string, string>> // sent with every request
}

/** Makes the request of a call. Throws an Error that says which argument is wrong. */
export const buildRequest = (plan: OperationPlan, args: Json, { url, query }: ApiBase): ApiRequest => {
  const given = plan.parameters.flatMap(parameter => {
    const value = args.get(parameter.argument)
    return value === undefined || value.kind === 'null' ? [] : [{ parameter, value }]
  })
  const inPlace = (place: ParameterPlan['place']) => given.filter(({ parameter }) => parameter.place === place)
  const pairs = inPlace('query').flatMap(({ parameter, value }) => writeQuery(parameter.name, value, parameter))
  const own = Object.entries(query).map(([name, value]) => `${percentEncode(name)}=${percentEncode(value)}`)
  const headers = inPlace('header').flatMap(({ parameter, value }) => [
    parameter.name.toLowerCase(),
    checkedHeader(parameter, writeHeaderValue(value, parameter)),
  ])
  const cookies = inPlace('cookie').flatMap(({ parameter, value }) => writeQuery(parameter.name, value, parameter))
  if (cookies.length > 0) headers.push('cookie', cookies.join('; '))
  const bodyValue = plan.body && args.get(plan.body.argument)
  const body = plan.body && bodyValue ? writeBody(plan.body, bodyValue) : undefined
  if (body) headers.push('content-type', body.contentType)
  const path = fillPath(
    plan,
    new Map(inPlace('path').map(({ parameter, value }) => [parameter.name, { parameter, value }])),
  )
  return {
    method: plan.method,
    url: url + path + queryOf([...pairs, ...own]),
    publicUrl: url + path + queryOf(pairs),
    headers: [...headers, 'accept', plan.accept],
    body: body?.bytes ?? null,
  }
}

const queryOf = (pairs: readonly string[]): string => (pairs.length > 0 ? `?${pairs.join('&')}` : '')

const checkedHeader = ({ argument }: ParameterPlan, text: string): string => {
  const error = headerValueError(text)
  if (error) throw new Error(`Argument "${argument}" cannot be sent as a header: ${error}`)
  return text
}

/** A value must not lead out of its place in the path: `..` is a step up, wherever it comes from. */
const fillPath = (
  { path }: OperationPlan,
  values: ReadonlyMap<string, { readonly parameter: ParameterPlan; readonly value: Json }>,
): string => {
  const filled = path.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const found = values.get(name)
    if (!found) throw new Error(`Argument "${name}" is required: it is a part of the path`)
    const text = writePathValue(name, found.value, found.parameter)
    if (text === '')
      throw new Error(`Argument "${found.parameter.argument}" must not be empty: it is a part of the path`)
    return text
  })
  if (filled.split('/').some(segment => segment === '.' || segment === '..'))
    throw new Error('An argument makes "." or ".." a part of the path, which leads to another path')
  return filled.replace(/[^\x21-\x7e]|["<>\\^`{|}#?]/g, character => percentEncode(character))
}
