import { Json } from '../../wire/json/json.ts'
import { failure } from './failures.ts'
import { textMember } from './listed.ts'

/** Proposes values that go on from what was typed; `given` are the arguments already filled in. */
export type Completer = (
  value: string,
  given: Readonly<Record<string, string>>,
) => readonly string[] | Promise<readonly string[]>

/** Something whose arguments can be completed. */
export interface Completable {
  readonly completers: ReadonlyMap<string, Completer>
}

const LIMIT = 100

/** A completer that offers those of a few fixed values that begin with what was typed. */
export const oneOf =
  (...values: string[]): Completer =>
  typed =>
    values.filter(value => value.startsWith(typed))

/** Answers completion/complete; `find` looks a reference up. */
export const complete = async (params: Json, find: (ref: Json) => Completable): Promise<Json> => {
  const argument = params.get('argument')
  if (!argument?.isObject) throw failure('invalidParams', 'argument must be an object')
  const ref = params.get('ref')
  if (!ref?.isObject) throw failure('invalidParams', 'ref must be an object')
  const [name, value] = [textMember(argument, 'name'), textMember(argument, 'value')]
  const values = (await find(ref).completers.get(name)?.(value, given(params))) ?? []
  return Json.of({
    completion: { values: values.slice(0, LIMIT), total: values.length, hasMore: values.length > LIMIT },
  })
}

const given = (params: Json): Record<string, string> =>
  Object.fromEntries(
    (params.at('context', 'arguments')?.entries() ?? []).flatMap(([name, value]) => {
      const text = value.asString()
      return text === undefined ? [] : [[name, text]]
    }),
  )
