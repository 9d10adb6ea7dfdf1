import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { OpenResponses } from './open-responses.ts'

class FakeResponse extends EventEmitter {
  isDestroyed = false
  readonly req = {
    socket: {
      destroy: () => {
        this.isDestroyed = true
      },
    },
  }
}

describe('the open responses', () => {
  it('are destroyed if what admitted them is no longer valid, whatever closed before', () => {
    const responses = new OpenResponses<string>()
    const opened = Array.from({ length: 6 }, (_, at) => {
      const response = new FakeResponse()
      responses.add(response as unknown as ServerResponse, at % 2 === 0 ? 'even' : 'odd')
      return response
    })
    for (const at of [0, 3, 5]) opened[at]?.emit('close')
    responses.destroyUnless(admittedBy => admittedBy === 'even')
    expect(opened.map(({ isDestroyed }) => isDestroyed)).toEqual([false, true, false, false, false, false])
    responses.destroyUnless(() => false)
    expect(opened.map(({ isDestroyed }) => isDestroyed)).toEqual([false, true, true, false, true, false])
  })

  it('are not kept after they have closed', () => {
    const responses = new OpenResponses<string>()
    const response = new FakeResponse()
    responses.add(response as unknown as ServerResponse, 'token')
    response.emit('close')
    responses.destroyUnless(() => false)
    expect(response.isDestroyed).toBe(false)
  })
})
