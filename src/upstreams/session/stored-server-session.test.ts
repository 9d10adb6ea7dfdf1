import { expect, test } from 'vitest'
import type { RemoteServer } from '../../config/snapshot.ts'
import { Json } from '../../wire/json/json.ts'
import { readHandshake } from './handshake.ts'
import { decodeStored, encodeStored, recordIds, urlHash } from './stored-server-session.ts'

const SERVER: RemoteServer & { readonly name: string } = {
  kind: 'remote',
  name: 'notes',
  url: 'https://notes.example/mcp',
  type: 'http',
  era: 'auto',
  timeoutMs: 1000,
  headers: { 'x-team': 'blue', authorization: 'Bearer é' },
}
const ISOLATED = { ...SERVER, type: 'auto', era: 'legacy', headers: {}, pool: 'isolated' } as const

// With other ids, the sessions that a former version has recorded would not be found after an update.
test('the ids of records are those that former versions wrote', () => {
  expect(recordIds(SERVER)('=anna', '["session","default","abc"]')).toBe('NjqJ6r9hiXVIlTBINzTa9zulR-1iK4eLvdKg4D-or3o')
  const idOf = recordIds({ ...ISOLATED, allowCrossOriginRedirect: true })
  expect(idOf('', 'k"')).toBe('ZR9AB_Wm_dLshtVFwTOLJVSx977_m1Cxcy_QeXXvjCg')
  expect(urlHash(SERVER.url)).toBe('4p1pwqeTK70F5nIMfp71dv2kdRWAtKeT-HtuEyAvY6Q')
})

const BODY =
  '{"format":1,"server":"notes","url":"u","workspace":"w","sessionId":"s","isReady":true,"hasStream":false,"attempts":0,' +
  '"principal":"anna","session":"c","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"é":1.0}}'

test('the body of a record is the one that former versions wrote', () => {
  const stored = decodeStored(Buffer.from(BODY))
  expect(stored?.handshake?.result.get('é')?.toString()).toBe('1.0')
  expect(stored && encodeStored(stored).toString()).toBe(BODY)
})

test('a handshake that is too large is left out', () => {
  const result = { protocolVersion: '2025-11-25', capabilities: {}, instructions: 'x'.repeat(60 * 1024) }
  const handshake = readHandshake(Json.of(result))
  if ('reason' in handshake) throw new Error(handshake.text)
  const state = { sessionId: 's', handshake, isReady: true, hasStream: true, attempts: 2, giveUpAt: 7 }
  const owner = { server: 'notes', url: 'u', workspace: 'w', principal: undefined, session: undefined }
  const stored = decodeStored(encodeStored({ ...owner, ...state }))
  expect(stored).toEqual({ ...owner, ...state, handshake: undefined })
})
