import { expect } from 'vitest'
import { isModern, type Revision } from '../../src/protocol/revisions.ts'
import { everyCell } from './cells.ts'
import type { Asked } from './client.ts'

const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } }
const ANSWERS: Record<string, Record<string, unknown>> = {
  'elicitation/create': { action: 'accept', content: { name: 'Ann' } },
  'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' },
  'roots/list': { roots: [{ uri: 'file:///home', name: 'home' }] },
}
const answer = ({ method }: Asked) => ANSWERS[method] ?? { error: { code: -32601, message: 'what?' } }
const textOf = (result: Record<string, unknown> | undefined): string =>
  (result?.content as { text: string }[] | undefined)?.[0]?.text ?? ''
const FORM = { message: 'Name?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
const LINK = { mode: 'url', message: 'Sign in', url: 'https://x.test/go', elicitationId: 'e1' }
const SAMPLE = { messages: [{ role: 'user', content: { type: 'text', text: 'Capital?' } }], maxTokens: 10 }
const knowsForms = (revision: Revision) => revision >= '2025-06-18'

everyCell(
  'sampling and roots are asked and answered, and the call ran once or once per round',
  async ({ client, server }) => {
    server.tools.set('ask', async call => {
      const roots = await call.ask('r', 'roots/list', {})
      const sample = await call.ask('s', 'sampling/createMessage', SAMPLE)
      return { content: [{ type: 'text', text: JSON.stringify([roots, sample]) }] }
    })
    const { result, error, asked } = await client.call('tools/call', { name: 'ask' }, { answer })
    expect(error).toBeUndefined()
    expect(asked.map(({ method }) => method)).toEqual(['roots/list', 'sampling/createMessage'])
    expect(asked[1]?.params).toMatchObject(SAMPLE)
    expect(JSON.parse(textOf(result))).toEqual([ANSWERS['roots/list'], ANSWERS['sampling/createMessage']])
    expect(server.of('tools/call')).toHaveLength(isModern(server.revision) ? 3 : 1)
  },
  // A modern tool of this matrix forgets earlier rounds, as stateless servers do; it is asked one thing at a time below.
  { capabilities: ALL, only: (_client, server) => !isModern(server) },
)

everyCell(
  'a modern server’s round becomes questions, and its state comes back byte for byte',
  async ({ client, server }) => {
    server.tools.set('ask', async call => {
      const [roots, sample] = await Promise.all([
        call.ask('r', 'roots/list', {}),
        call.ask('s', 'sampling/createMessage', SAMPLE),
      ])
      return { content: [{ type: 'text', text: JSON.stringify([roots, sample]) }] }
    })
    const { result, asked } = await client.call('tools/call', { name: 'ask', arguments: { a: 1.5 } }, { answer })
    expect(asked.map(({ method }) => method).sort()).toEqual(['roots/list', 'sampling/createMessage'])
    expect(JSON.parse(textOf(result))).toEqual([ANSWERS['roots/list'], ANSWERS['sampling/createMessage']])
    const calls = server.of('tools/call').map(({ message }) => message)
    expect(calls).toHaveLength(2)
    expect(calls[0]?.id).not.toBe(calls[1]?.id)
    expect(calls[1]?.params).toMatchObject({
      requestState: 'st-1 é',
      inputResponses: { r: ANSWERS['roots/list'], s: ANSWERS['sampling/createMessage'] },
      arguments: { a: 1.5 },
    })
  },
  { capabilities: ALL, only: (_client, server) => isModern(server) },
)

everyCell(
  'a form is asked of every client that declares forms, whatever its revision, and answered',
  async ({ client, server }) => {
    server.tools.set('ask', async call => ({
      content: [],
      structuredContent: await call.ask('f', 'elicitation/create', FORM),
    }))
    const { result, asked } = await client.call('tools/call', { name: 'ask' }, { answer })
    expect(asked).toMatchObject([{ method: 'elicitation/create', params: FORM }])
    expect(result?.structuredContent).toEqual(ANSWERS['elicitation/create'])
  },
  { capabilities: ALL, only: (_client, server) => knowsForms(server) },
)

everyCell(
  'a link is shown to every client that declares links, whatever its revision',
  async ({ client, server }) => {
    server.tools.set('ask', async call => ({
      content: [],
      structuredContent: await call.ask('l', 'elicitation/create', LINK),
    }))
    const { result, asked } = await client.call('tools/call', { name: 'ask' }, { answer: () => ({ action: 'accept' }) })
    expect(asked).toMatchObject([{ method: 'elicitation/create', params: LINK }])
    expect(result?.structuredContent).toEqual({ action: 'accept' })
  },
  { capabilities: ALL, only: (_client, server) => server >= '2025-11-25' },
)

everyCell(
  'a client that declared nothing is not asked, and the server is told',
  async ({ client, server }) => {
    server.tools.set('ask', async call => {
      try {
        await call.ask('r', 'roots/list', {})
        return { content: [{ type: 'text', text: 'asked' }] }
      } catch (error) {
        return { content: [{ type: 'text', text: `refused ${(error as { code?: number }).code}` }] }
      }
    })
    const { result } = await client.call('tools/call', { name: 'ask' })
    expect(result?.content).toEqual([{ type: 'text', text: 'refused -32601' }])
  },
  { capabilities: {}, only: (_client, server) => !isModern(server) },
)
