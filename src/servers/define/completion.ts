import { Json } from '../../wire/json/json.ts'
import { textParam } from './call.ts'
import { failure } from './failures.ts'

/** Proposes values that begin with what the user typed; `given` are the arguments already filled in. */
export type Completer = (
  value: string,
  given: Readonly<Record<string, string>>,
) => readonly string[] | Promise<readonly string[]>

/** A prompt or a template whose arguments can be completed. */
export interface Completable {
  readonly completers: ReadonlyMap<string, Completer>
}

const MAX_VALUES = 100 // a bound of the specification

/** A completer for a few fixed values. */
export const oneOf =
  (...values: string[]): Completer =>
  typed =>
    values.filter(value => value.startsWith(typed))

/** Answers completion/complete; `find` returns what `ref` refers to. */
export const complete = async (params: Json, find: (ref: Json) => Completable): Promise<Json> => {
  const [argument, ref] = [objectParam(params, 'argument'), objectParam(params, 'ref')]
  const [name, value] = [textParam(argument, 'name'), textParam(argument, 'value')]
  const values = (await find(ref).completers.get(name)?.(value, givenArguments(params))) ?? []
  return Json.of({
    completion: { values: values.slice(0, MAX_VALUES), total: values.length, hasMore: values.length > MAX_VALUES },
  })
}

const objectParam = (params: Json, key: string): Json => {
  const value = params.get(key)
  if (!value?.isObject) throw failure('invalidParams', `${key} must be an object`)
  return value
}

const givenArguments = (params: Json): Record<string, string> =>
  Object.fromEntries(
    (params.at('context', 'arguments')?.entries() ?? []).flatMap(([name, value]) => {
      const text = value.asString()
      return text === undefined ? [] : [[name, text]]
    }),
  )
