import { expect, test } from 'vitest'
import { callerOf } from '../../../test/support/workspace.ts'
import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { mergePages } from './merge-pages.ts'

/** A server with two pages of tools. */
const send = ({ params, sink }: Exchange): void => {
  const result = params.has('cursor') ? { tools: [{ name: 'b' }] } : { tools: [{ name: 'a' }], nextCursor: '2' }
  void deliver(sink, { kind: 'result', result: Json.of(result) })
}

const listTools = (take: (frame: Frame) => void): Frame[] => {
  const frames: Frame[] = []
  mergePages('docs', send, () => {})({
    kind: 'request',
    method: 'tools/list',
    params: Json.empty,
    caller: callerOf(),
    signal: new Abort(),
    sink: frame => {
      frames.push(frame)
      take(frame)
    },
  })
  return frames
}

test('the pages of a list are answered as one', () => {
  const [frame] = listTools(() => {})
  expect(frame?.kind === 'result' && frame.result.toString()).toBe('{"tools":[{"name":"a"},{"name":"b"}]}')
})

test('a merged list that the sink cannot take ends with a failure', () => {
  const frames = listTools(frame => {
    if (frame.kind === 'result') throw new Error('cannot be converted')
  })
  expect(frames.map(({ kind }) => kind)).toEqual(['result', 'failure'])
})
