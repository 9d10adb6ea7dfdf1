import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { expandTemplate } from '../../protocol/uri-template.ts'
import { Json } from '../../wire/json/json.ts'
import type { AmbiguousName, ListKind, ShownItem } from '../catalog/view.ts'
import { type RouteContext, rejectParams } from './route-context.ts'

const METHOD_NOT_FOUND = -32601
const NOTHING = Json.of({ completion: { values: [], hasMore: false } })

/** What may be completed, by the type of the reference: on which shelves it stands, and which member names it. */
const REFERENCES: Readonly<Record<string, { kinds: readonly ListKind[]; key: string; word: string }>> = {
  'ref/prompt': { kinds: ['prompts'], key: 'name', word: 'prompt' },
  'ref/resource': { kinds: ['templates', 'resources'], key: 'uri', word: 'resource template' },
}

/** Routes completions to the member whose prompt or template it is; one that completes nothing has no values. */
export const createCompletionRoute = (context: RouteContext) => {
  const find = async ({ caller }: Exchange, kinds: readonly ListKind[], name: string) => {
    for (const kind of kinds) {
      const found = (await context.lists.get(caller, kind)).find(name)
      if (found) return preferred(found, context.provenance.appMember(caller)?.server)
    }
    return undefined
  }

  const deliver = (exchange: Exchange, ref: Json, key: string, { member, original }: ShownItem): void => {
    const rules = context.rulesOf(exchange.caller)
    const mayHide = key === 'uri' && rules.hides('resources')
    const isSeen = (uri: string): boolean => rules.allows('resources', member.server, uri)
    const told = (frame: Frame): Frame => {
      if (isUnable(frame)) return { kind: 'result', result: NOTHING }
      return mayHide && frame.kind === 'result'
        ? { kind: 'result', result: onlySeen(frame.result, original, exchange.params, isSeen) }
        : frame
    }
    // A server of the first revision completes without saying that it does, so each is asked.
    context.send(member, {
      ...exchange,
      params: exchange.params.with('ref', ref.with(key, original)),
      sink: frame => exchange.sink(told(frame)),
    })
  }

  return (exchange: Exchange): void => {
    const ref = exchange.params.get('ref')
    const type = ref?.get('type')?.asString() ?? ''
    const reference = Object.hasOwn(REFERENCES, type) ? REFERENCES[type] : undefined
    const name = reference && ref?.get(reference.key)?.asString()
    if (!ref || !reference || name === undefined)
      return rejectParams(exchange, '`ref` must be a ref/prompt with a name or a ref/resource with a uri')
    context.when(find(exchange, reference.kinds, name), exchange, entry => {
      if (entry) deliver(exchange, ref, reference.key, entry)
      else rejectParams(exchange, `Unknown ${reference.word}: ${name}`)
    })
  }
}

const preferred = (found: ShownItem | AmbiguousName, server: string | undefined): ShownItem | undefined =>
  'candidates' in found ? found.candidates.find(({ member }) => member.server === server) : found

const isUnable = (frame: Frame): boolean => frame.kind === 'failure' && frame.error.code === METHOD_NOT_FOUND

/** Leaves out what would lead to something hidden; how many there are in all would tell of it, too. */
const onlySeen = (result: Json, template: string, params: Json, isSeen: (uri: string) => boolean): Json => {
  const values = result.at('completion', 'values')
  const name = params.at('argument', 'name')?.asString()
  const uriWith = (value: string): string =>
    expandTemplate(template, variable =>
      variable === name ? value : params.at('context', 'arguments', variable)?.asString(),
    )
  const seen = (values?.elements() ?? []).filter(value => isSeen(uriWith(value.asString() ?? '')))
  const own = result.get('completion')
  const completion = own?.isObject ? own : Json.empty
  return result.with('completion', completion.without('total').with('values', seen))
}
