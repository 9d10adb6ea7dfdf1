import { expect, test } from 'vitest'
import { Json } from '../../wire/json/json.ts'
import { SessionReplay } from './session-replay.ts'

const PAD = 'x'.repeat(1 << 20)
const bodyWith = (member: object): Json =>
  Json.parse(Buffer.from(JSON.stringify({ member, PAD }))).get('member') as Json

test('a session replay keeps its requests without the messages they came in', () => {
  const replay = new SessionReplay()
  const remember = (method: string, params: object) => replay.remember({ method, params: bodyWith(params) })
  remember('resources/subscribe', { uri: 'a:b' })
  remember('logging/setLevel', { level: 'info' })
  expect(replay.requests().map(([method, params]) => [method, params.toString()])).toEqual([
    ['resources/subscribe', '{"uri":"a:b"}'],
    ['logging/setLevel', '{"level":"info"}'],
  ])
  for (const [, params] of replay.requests()) expect(params.retained).toBeLessThan(1024)
})
