import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { gives, routed } from '../../../test/support/routes.ts'
import { scriptedMember } from '../../../test/support/scripted-member.ts'
import { type Asked, workspaceOf } from '../../../test/support/workspace.ts'
import { EVERYTHING } from '../../protocol/policy.ts'
import { NEWEST_LEGACY } from '../../protocol/revisions.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const UPDATED = 'notifications/resources/updated'
const policy = { ...EVERYTHING, deny: { resources: ['file:///secret/*'] } }

const toldOf = ({ frames }: Asked) =>
  frames.flatMap(frame =>
    frame.kind === 'notice' && frame.method === UPDATED ? (frame.params.get('uri')?.asString() ?? '') : [],
  )

test.each(['a session', 'a modern caller'])('%s gets no update of a hidden resource', async who => {
  const answers = { 'resources/list': () => ({ resources: [{ uri: 'file:///', name: 'all' }] }) }
  const a = scriptedMember('a', { answers })
  const w = workspaceOf([a], { policy })
  const session = who === 'a session' ? { session: 's', revision: NEWEST_LEGACY } : {}
  const wanted = { resourcesListChanged: true, resourceSubscriptions: ['file:///'] }
  const listener = w.begin('subscriptions/listen', { notifications: wanted }, session)
  await vi.advanceTimersByTimeAsync(10)
  for (const uri of ['file:///secret/1', 'file:///open/1', 'file:///open/../secret/1']) a.say(UPDATED, { uri })
  expect(toldOf(listener)).toEqual(['file:///open/1'])
  w.close()
})

test.each(['file:///{+path}', 'file:///{dir}/{+path}'])(
  'the completion of %s does not guess what is hidden',
  async uri => {
    const values = uri.includes('{dir}') ? ['1', 'x'] : ['secret/1', 'open/1']
    const answer = gives({ completion: { values, total: 2, hasMore: false } })
    const { say } = routed({ a: { lists: { templates: [{ uriTemplate: uri }] }, answer }, b: {} }, { policy })
    const complete = async (dir: string) =>
      (
        await say('completion/complete', {
          ref: { type: 'ref/resource', uri },
          argument: { name: 'path', value: '' },
          context: { arguments: { dir } },
        })
      ).result()
    const shown = uri.includes('{dir}') ? [] : ['open/1']
    expect(await complete('secret')).toEqual({ completion: { values: shown, hasMore: false } })
    expect(await complete('open')).toMatchObject({ completion: { values: uri.includes('{dir}') ? values : shown } })
  },
)

test.each([[[]], [7], ['text'], [null], [[['a']]], [{ values: 'a' }]])(
  'a completion is answered where things are hidden and the server completes with %j',
  async completion => {
    const uri = 'file:///{+path}'
    const answer = gives({ completion })
    const { say } = routed({ a: { lists: { templates: [{ uriTemplate: uri }] }, answer }, b: {} }, { policy })
    const asked = { ref: { type: 'ref/resource', uri }, argument: { name: 'path', value: '' } }
    expect(await (await say('completion/complete', asked)).result()).toEqual({ completion: { values: [] } })
  },
)

test.each([1, 2])(
  'of %i servers: the completion of a hidden URI is answered as that of an unknown one',
  async count => {
    const lists = {
      templates: [{ uriTemplate: 'file:///secret/{+path}' }, { uriTemplate: 'file:///{dir}/{+path}' }],
      resources: [{ uri: 'file:///secret/1', name: 'one' }],
    }
    const answer = gives({ completion: { values: ['1'], total: 900, hasMore: true } })
    const { say, arrivals } = routed({ a: { lists, answer }, ...(count > 1 && { b: {} }) }, { policy })
    const complete = (uri: string, dir = '') =>
      say('completion/complete', {
        ref: { type: 'ref/resource', uri },
        argument: { name: 'path', value: '' },
        context: { arguments: { dir } },
      })
    for (const uri of ['file:///secret/1', 'file:///secret/{+path}', 'file:///unknown/1'])
      expect(await (await complete(uri)).failure()).toEqual({
        code: -32602,
        message: `Unknown resource template: ${uri}`,
      })
    expect(arrivals).toEqual([])
    expect(await (await complete('file:///{dir}/{+path}', 'secret')).result()).toEqual({
      completion: { values: [], hasMore: false },
    })
  },
)
