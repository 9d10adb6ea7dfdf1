import { SERVED } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import type { Call } from './call.ts'
import { type Completable, complete } from './completion.ts'
import { failure } from './failures.ts'
import { type Catalogue, createCatalogue, type Listed, textMember } from './listed.ts'
import { getPrompt, type Prompt } from './prompts.ts'
import { isKnownUri, type Resource, readResource, type Template } from './resources.ts'
import type { Announces } from './subscriptions.ts'
import { callTool, type Tool } from './tools.ts'

/** A built-in server as its author writes it; what is left out is not offered. */
export interface ServerDefinition {
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly description?: string
  readonly instructions?: string
  readonly tools?: Listed<Tool>
  readonly prompts?: Listed<Prompt>
  readonly resources?: Listed<Resource>
  readonly templates?: Listed<Template>
}

/** Answers one method with the body of its result. */
export type Handler = (call: Call) => Json | Promise<Json>

/** What a definition amounts to: the methods it answers, and what it can announce. */
export interface Offers {
  readonly handlers: ReadonlyMap<string, Handler>
  readonly announces: Announces
}

/** Turns a definition into a table of methods; what it does not declare is an unknown method. */
export const offersOf = (definition: ServerDefinition): Offers => {
  const catalogues = {
    tools: createCatalogue('tools', definition.tools ?? []),
    prompts: createCatalogue('prompts', definition.prompts ?? []),
    resources: createCatalogue('resources', definition.resources ?? []),
    templates: createCatalogue('resourceTemplates', definition.templates ?? []),
  }
  const { prompts, resources, templates } = catalogues
  const has: Has = {
    tools: definition.tools !== undefined,
    prompts: definition.prompts !== undefined,
    resources: definition.resources !== undefined || definition.templates !== undefined,
    completions: [...prompts.all(), ...templates.all()].some(({ completers }) => completers.size > 0),
  }
  const rows: readonly Row[] = [['server/discover', true, () => discover(definition, has)], ...methods(catalogues, has)]
  return {
    handlers: new Map(rows.flatMap(([method, offered, handler]) => (offered ? [[method, handler]] : []))),
    announces: {
      flags: (['tools', 'prompts', 'resources'] as const).flatMap(kind =>
        has[kind] ? [`${kind}ListChanged` as const] : [],
      ),
      knows: uri => isKnownUri(resources, templates, uri),
    },
  }
}

interface Has {
  readonly tools: boolean
  readonly prompts: boolean
  readonly resources: boolean
  readonly completions: boolean
}

interface Catalogues {
  readonly tools: Catalogue<Tool>
  readonly prompts: Catalogue<Prompt>
  readonly resources: Catalogue<Resource>
  readonly templates: Catalogue<Template>
}

type Row = readonly [method: string, offered: boolean, handler: Handler]

const methods = ({ tools, prompts, resources, templates }: Catalogues, has: Has): readonly Row[] => [
  ['tools/list', has.tools, ({ params }) => tools.write(params)],
  ['tools/call', has.tools, call => callTool(tools, call)],
  ['prompts/list', has.prompts, ({ params }) => prompts.write(params)],
  ['prompts/get', has.prompts, call => getPrompt(prompts, call)],
  ['resources/list', has.resources, ({ params }) => resources.write(params)],
  ['resources/templates/list', has.resources, ({ params }) => templates.write(params)],
  ['resources/read', has.resources, call => readResource(resources, templates, call)],
  [
    'completion/complete',
    has.completions,
    ({ params }) => complete(params, ref => find(prompts.find, templates.find, ref)),
  ],
]

const discover = ({ instructions }: ServerDefinition, has: Has): Json => {
  const when = (offered: boolean, capability: PlainObject): PlainObject | undefined =>
    offered ? capability : undefined
  return Json.of({
    supportedVersions: SERVED,
    capabilities: {
      logging: {},
      completions: when(has.completions, {}),
      prompts: when(has.prompts, { listChanged: true }),
      resources: when(has.resources, { listChanged: true, subscribe: true }),
      tools: when(has.tools, { listChanged: true }),
    },
    instructions,
  })
}

type Find = (name: string) => Completable | undefined

/** The prompt or the template that a completion refers to. */
const find = (findPrompt: Find, findTemplate: Find, ref: Json): Completable => {
  const type = textMember(ref, 'type')
  if (type !== 'ref/prompt' && type !== 'ref/resource')
    throw failure('invalidParams', `ref.type must be ref/prompt or ref/resource, not ${type}`)
  const name = textMember(ref, type === 'ref/prompt' ? 'name' : 'uri')
  const found = type === 'ref/prompt' ? findPrompt(name) : findTemplate(name)
  if (!found)
    throw failure('invalidParams', `Unknown ${type === 'ref/prompt' ? 'prompt' : 'resource template'}: ${name}`)
  return found
}
