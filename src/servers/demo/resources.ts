import { oneOf } from '../define/completion.ts'
import { type Resource, resource, type Template, template } from '../define/resources.ts'
import { RED_PIXEL } from './tools.ts'

/** What calls change for all callers. */
export interface DemoState {
  updates: number // of the watched resource
  readonly extras: { tool: boolean; prompt: boolean; resource: boolean } // whether each is listed
}

export const createState = (): DemoState => ({ updates: 0, extras: { tool: false, prompt: false, resource: false } })

export const WATCHED = 'test://watched-resource'

/** Three fixed resources, and one that test_trigger_resource_change lists and unlists. */
export const demoResources = (state: DemoState): (() => readonly Resource[]) => {
  const always = [
    resource({
      uri: 'test://static-text',
      name: 'static-text',
      title: 'A text',
      description: 'A text that never changes',
      mimeType: 'text/plain',
      read: () => 'This is the content of the static text resource.',
    }),
    resource({
      uri: 'test://static-binary',
      name: 'static-binary',
      title: 'An image',
      description: 'An image that never changes',
      mimeType: 'image/png',
      read: () => Buffer.from(RED_PIXEL, 'base64'),
    }),
    resource({
      uri: WATCHED,
      name: 'watched-resource',
      title: 'A counter',
      description: 'Changes with every call of test_trigger_resource_update',
      mimeType: 'text/plain',
      read: () => `Updated ${state.updates} times`,
    }),
  ]
  const more = [...always, extra]
  return () => (state.extras.resource ? more : always)
}

const extra = resource({
  uri: 'test://changing-resource',
  name: 'changing-resource',
  description: 'Listed and unlisted by test_trigger_resource_change',
  mimeType: 'text/plain',
  read: () => 'Here for now',
})

export const demoTemplates: readonly Template[] = [
  template({
    uriTemplate: 'test://template/{id}/data',
    name: 'template-data',
    title: 'Data by id',
    description: 'JSON that names the id of its URI',
    mimeType: 'application/json',
    complete: { id: oneOf('1', '12', '123') },
    read: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  }),
]
