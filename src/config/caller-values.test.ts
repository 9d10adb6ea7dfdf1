import { describe, expect, it } from 'vitest'
import { checkConfig } from './check.ts'
import type { Environment } from './variables.ts'

const check = (entry: object, env: Environment = {}) => {
  const { snapshot, problems } = checkConfig(
    { value: { mcpServers: { it: entry } }, placeOf: () => undefined, repeated: [] },
    { env },
  )
  return {
    server: snapshot.servers.get('it'),
    problems: problems.map(({ path, message }) => `${path.join('.')}: ${message}`),
    warnings: snapshot.warnings,
  }
}
const REMOTE = { url: 'http://127.0.0.1:1/mcp' }
const NAME = { caller: 'name' }

describe('places for the caller', () => {
  it('stay in headers, between what is filled in when the file is read', () => {
    const { server } = check(
      {
        ...REMOTE,
        headers: { 'X-User': '${caller.name}', Via: ' a${X} ${caller.name}@${caller.workspace} ', P: '${X}' },
      },
      { X: 'b' },
    )
    expect(server).toMatchObject({
      headers: { p: 'b' },
      personal: { values: { 'x-user': [NAME], via: ['ab ', NAME, '@', { caller: 'workspace' }] } },
    })
  })

  it('stay in variables of a program', () => {
    const { server } = check({ command: 'x', env: { WHO: 'user ${caller.name}', N: 5 } })
    expect(server).toMatchObject({ env: { N: '5' }, personal: { values: { WHO: ['user ', NAME] } } })
  })

  it('are not made by what a variable holds', () => {
    const { server } = check({ ...REMOTE, headers: { A: '${X}' } }, { X: '${caller.name}' })
    expect(server).toMatchObject({ headers: { a: '${caller.name}' } })
    expect(server).not.toHaveProperty('personal')
  })

  it('are known by two names', () => {
    expect(check({ ...REMOTE, headers: { A: '${caller.email}' } }).problems).toEqual([
      'mcpServers.it.headers.A: ${caller.email} is not known: there are ${caller.name} and ${caller.workspace}',
    ])
    expect(check({ command: 'x', env: { A: '${caller.}' } }).problems).toEqual([expect.stringContaining('not known')])
  })

  it('stand nowhere else', () => {
    expect(check({ url: 'http://${caller.name}.test/' }).server).toMatchObject({ kind: 'unavailable' })
    expect(check({ command: 'x', args: ['${caller.name}'] }).server).toMatchObject({ kind: 'unavailable' })
  })

  it('do not hide a line break beside them', () => {
    expect(check({ ...REMOTE, headers: { A: '${X}${caller.name}' } }, { X: 'a\r\n' }).server).toMatchObject({
      kind: 'unavailable',
      reason: expect.stringContaining('cannot be sent in an HTTP header'),
    })
    expect(check({ ...REMOTE, headers: { A: 'a\n${caller.name}' } }).problems).toHaveLength(1)
  })
})

describe('credentials', () => {
  it('are headers by principal', () => {
    const credentials = {
      alice: { headers: { Authorization: 'Bearer ${ALICE}' } },
      '*': { headers: { 'X-User': '${caller.name}' } },
    }
    expect(check({ ...REMOTE, headers: { A: 'b' }, credentials }, { ALICE: 'a-token' }).server).toMatchObject({
      headers: { a: 'b' },
      personal: {
        values: {},
        credentials: {
          alice: { kind: 'values', values: { authorization: ['Bearer a-token'] } },
          '*': { kind: 'values', values: { 'x-user': [NAME] } },
        },
      },
    })
  })

  it('are variables of a program', () => {
    const credentials = { alice: { env: { TOKEN: '${ALICE}' } } }
    expect(check({ command: 'x', credentials }, { ALICE: 't' }).server).toMatchObject({
      personal: { credentials: { alice: { kind: 'values', values: { TOKEN: ['t'] } } } },
    })
  })

  it('with a missing variable make the server unusable for one caller only', () => {
    const credentials = { alice: { headers: { A: '${ALICE}' } }, bob: { headers: { A: '${BOB}' } } }
    const { server, warnings } = check({ ...REMOTE, credentials }, { ALICE: 't' })
    expect(server).toMatchObject({
      kind: 'remote',
      personal: { credentials: { alice: { kind: 'values' }, bob: { kind: 'missing' } } },
    })
    expect(warnings).toEqual([expect.stringMatching(/it: credentials\.bob\.headers\.A: the variable BOB is not set;/)])
  })

  it('of the wrong kind, with unknown keys, or empty are reported', () => {
    expect(check({ ...REMOTE, credentials: { a: { env: {} } } }).problems).toEqual([
      'mcpServers.it.credentials.a.env: variables go with a "command"; a remote server takes "headers"',
    ])
    expect(check({ command: 'x', credentials: { a: { headers: {} } } }).problems).toHaveLength(1)
    expect(check({ ...REMOTE, credentials: { a: { token: 'x' } } }).problems).toHaveLength(1)
    expect(check({ ...REMOTE, credentials: { a: { headers: { 'a b': 'x' } } } }).problems).toHaveLength(1)
    expect(check({ ...REMOTE, credentials: {} }).warnings).toEqual([expect.stringContaining('no caller can use')])
  })

  it('may be for a caller with an unusual name', () => {
    const entry = JSON.parse(
      '{"url":"http://127.0.0.1:1/","credentials":{"__proto__":{"headers":{"A":"x"}},"toString":{"headers":{"A":"y"}}}}',
    ) as object
    const { server } = check(entry)
    const credentials = server && 'personal' in server ? server.personal?.credentials : undefined
    expect(Object.keys(credentials ?? {})).toContain('toString')
    expect(Object.getPrototypeOf(credentials)).toBe(Object.prototype)
  })
})
