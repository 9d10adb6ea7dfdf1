import { ERRORS } from '../../protocol/errors.ts'
import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { expandTemplate } from '../../protocol/uri-template.ts'
import { Json } from '../../wire/json/json.ts'
import type { ListKind } from '../catalog/list-kinds.ts'
import type { ListItem } from '../catalog/merged-list.ts'
import type { RouteContext } from './route-context.ts'
import { rejectParams } from './send.ts'

const NO_VALUES = Json.of({ completion: { values: [], hasMore: false } })

/** What can be completed, by the type of the reference: the lists that have it, and the member that names it. */
const REFERENCES: Readonly<Record<string, { kinds: readonly ListKind[]; key: string; noun: string }>> = {
  'ref/prompt': { kinds: ['prompts'], key: 'name', noun: 'prompt' },
  'ref/resource': { kinds: ['templates', 'resources'], key: 'uri', noun: 'resource template' },
}

/** Routes completions to the member that has the prompt or template; a member without completions has no values. */
export const createCompletionRoute = (context: RouteContext) => {
  const find = async (caller: Caller, kinds: readonly ListKind[], name: string): Promise<ListItem | undefined> => {
    for (const kind of kinds) {
      const found = (await context.lists.get(caller, kind)).find(name)
      if (found && !('candidates' in found)) return found
      const app = found && context.provenance.appServerOf(caller)
      if (found) return found.candidates.find(({ member }) => member.server === app)
    }
    return undefined
  }

  const forward = (exchange: Exchange, ref: Json, key: string, { member, original }: ListItem): void => {
    const rules = context.rulesOf(exchange.caller)
    const mayHide = key === 'uri' && rules.hides('resources')
    const isVisible = (uri: string): boolean => rules.allows('resources', member.server, uri)
    const filter = (frame: Frame): Frame => {
      if (isUnsupported(frame)) return { kind: 'result', result: NO_VALUES }
      return mayHide && frame.kind === 'result'
        ? { kind: 'result', result: onlyVisible(frame.result, original, exchange.params, isVisible) }
        : frame
    }
    // Servers of the first revision have completions without the capability, so every server is called.
    context.send(member, {
      ...exchange,
      params: exchange.params.with('ref', ref.with(key, original)),
      sink: frame => exchange.sink(filter(frame)),
    })
  }

  return (exchange: Exchange): void => {
    const ref = exchange.params.get('ref')
    const type = ref?.get('type')?.asString() ?? ''
    const reference = Object.hasOwn(REFERENCES, type) ? REFERENCES[type] : undefined
    const name = reference && ref?.get(reference.key)?.asString()
    if (!ref || !reference || name === undefined)
      return rejectParams(exchange, '`ref` must be a ref/prompt with a name or a ref/resource with a uri')
    context.continueWith(find(exchange.caller, reference.kinds, name), exchange, item => {
      if (item) forward(exchange, ref, reference.key, item)
      else rejectParams(exchange, `Unknown ${reference.noun}: ${name}`)
    })
  }
}

const isUnsupported = (frame: Frame): boolean =>
  frame.kind === 'failure' && frame.error.code === ERRORS.methodNotFound.code

/** Removes values that lead to a hidden resource, and the figures that would reveal that there are some. */
const onlyVisible = (result: Json, template: string, params: Json, isVisible: (uri: string) => boolean): Json => {
  const values = result.at('completion', 'values')
  const name = params.at('argument', 'name')?.asString()
  const uriWith = (value: string): string =>
    expandTemplate(template, variable =>
      variable === name ? value : params.at('context', 'arguments', variable)?.asString(),
    )
  const visible = (values?.elements() ?? []).filter(value => isVisible(uriWith(value.asString() ?? '')))
  const given = result.get('completion')
  const completion = given?.isObject ? given : Json.empty
  const shown = completion.without('total').with('values', visible)
  return result.with('completion', visible.length === 0 && shown.has('hasMore') ? shown.with('hasMore', false) : shown)
}
