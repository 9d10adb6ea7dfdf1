import { describe, expect, it } from 'vitest'
import { acceptsJson, acceptsSse, isEventStream, isJsonBody } from './media-type.ts'

describe('Accept', () => {
  it.each([
    [undefined, true, true],
    ['', true, true],
    ['*/*', true, true],
    ['*', true, true],
    ['application/json, text/event-stream', true, true],
    ['application/json,text/event-stream', true, true],
    ['TEXT/Event-Stream;charset=utf-8 , Application/JSON; q=0.5', true, true],
    ['application/json', true, false],
    ['application/*', true, false],
    ['text/event-stream', false, true],
    ['text/*', false, true],
    ['text/html, */*;q=0.8', true, true],
    ['text/html, image/gif, *; q=.2', true, true],
    ['text/html', false, false],
    ['image/*', false, false],
    ['application/json;q=0, text/event-stream', false, true],
    ['*/*, text/event-stream;q=0', true, false],
    ['*/*;q=0, application/json', true, false],
    ['text/event-stream;q=0.0, text/*', false, false],
    ['*/*; q=0', false, false],
    ['application/json;q=x', true, false],
    [',,application/json,', true, false],
  ])('%j: JSON %s, event stream %s', (accept, json, sse) => {
    expect([acceptsJson(accept), acceptsSse(accept)]).toEqual([json, sse])
  })
})

describe('Content-Type', () => {
  it.each([
    [undefined, true],
    ['application/json', true],
    ['Application/JSON; charset=UTF-8', true],
    ['application/json;', true],
    ['application/json-rpc', true],
    ['application/vnd.mcp+json', true],
    ['text/plain', false],
    ['text/plain; application/json', false],
    ['application/x-www-form-urlencoded', false],
    ['multipart/form-data; boundary=x', false],
    ['application/jsonp', false],
    ['text/event-stream', false],
  ])('%j is a JSON body: %s', (type, expected) => {
    expect(isJsonBody(type)).toBe(expected)
  })

  it('knows an event stream', () => {
    expect(isEventStream('text/event-stream')).toBe(true)
    expect(isEventStream('Text/Event-Stream; charset=utf-8')).toBe(true)
    expect(isEventStream('application/json')).toBe(false)
    expect(isEventStream(undefined)).toBe(false)
  })
})
