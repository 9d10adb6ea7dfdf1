import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { absentPolicy, EVERYTHING, type Policy } from '../../protocol/policy.ts'
import { Json } from '../../wire/json/json.ts'
import { compileGlob } from './globs.ts'
import { createPolicy } from './policy.ts'

const policy = (over: Partial<Policy>): Policy => ({ ...EVERYTHING, ...over })

describe('globs', () => {
  test.each([
    ['github/list_*', 'github/list_issues', true],
    ['github/list_*', 'github/list_', true],
    ['github/list_*', 'gitlab/list_issues', false],
    ['*', '', true],
    ['*', 'anything/at all', true],
    ['', '', true],
    ['', 'x', false],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['a?c', 'a😀c', true],
    ['*/delete_*', 'a/b/delete_x', true],
    ['*.ts', 'x.ts.map', false],
    ['a.c', 'abc', false],
    ['a*b*c', 'aXbYbZc', true],
    ['a*b*c', 'acb', false],
    ['List', 'list', false],
  ])('%j and %j: %s', (pattern, text, fits) => {
    expect(compileGlob(pattern)(text)).toBe(fits)
  })

  test('a pattern of many stars is matched in bounded time', () => {
    const matches = compileGlob(`${'*a'.repeat(200)}b`)
    expect(matches('a'.repeat(5000))).toBe(false)
  })

  test('a pattern made from a text by inserting stars matches it', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.nat(), (text, a, b) => {
        const [from, to] = [a % (text.length + 1), b % (text.length + 1)].sort((x, y) => x - y) as [number, number]
        expect(compileGlob(`${text.slice(0, from)}*${text.slice(to)}`)(text)).toBe(true)
      }),
    )
  })
})

describe('policies', () => {
  test('an empty policy is open', () => {
    const rules = createPolicy(EVERYTHING)
    expect([rules.isOpen, rules.allows('tools', 'a', 'x'), rules.allowsServer('a')]).toEqual([true, true, true])
  })

  test.each([
    [{ allow: { tools: ['github/list_*'] } }, true],
    [{ allow: { tools: ['git*/x', 'files/*'] } }, true],
    [{ allow: { tools: ['*'] } }, true],
    [{ allow: { tools: ['*in'] } }, true],
    [{ allow: { tools: ['github/list_*'] }, deny: { tools: ['github/login'] } }, false],
    [{ deny: { tools: ['*/login'] } }, false],
    [{ allow: { tools: ['files/*'] } }, false],
    [{ allow: { tools: [] } }, false],
    [{ allow: { servers: ['files'] } }, false],
    [{ readOnly: true }, true],
  ])('the tool that starts a login under %j: %s', (over, isShown) => {
    const rules = createPolicy(policy(over))
    const item = Json.of({ name: 'login', _meta: { 'dragoman/login': true } })
    expect([rules.allows('tools', 'github', 'login', item), rules.allowsLogin('github')]).toEqual([isShown, isShown])
  })

  test('an allow list hides a tool "login" of the server itself', () => {
    const rules = createPolicy(policy({ allow: { tools: ['github/list_*'] } }))
    expect(rules.allows('tools', 'github', 'login', Json.of({ name: 'login' }))).toBe(false)
  })

  test('an item that is denied or not allowed is hidden', () => {
    const rules = createPolicy(
      policy({ allow: { tools: ['github/*', 'files/read'] }, deny: { tools: ['*/delete_*'] } }),
    )
    const allowed = ['github/x', 'github/delete_x', 'files/read', 'files/write'].map(word => {
      const [server = '', name = ''] = word.split('/')
      return rules.allows('tools', server, name)
    })
    expect(allowed).toEqual([true, false, true, false])
    expect([rules.allows('prompts', 'files', 'x'), rules.isOpen]).toEqual([true, false])
  })

  test('an empty allow list allows nothing of its kind', () => {
    const rules = createPolicy(policy({ allow: { prompts: [] } }))
    expect([rules.allows('prompts', 'a', 'x'), rules.allows('tools', 'a', 'x'), rules.isOpen]).toEqual([
      false,
      true,
      false,
    ])
  })

  test('a denied server has nothing', () => {
    const rules = createPolicy(policy({ deny: { servers: ['git*'] } }))
    expect([rules.allowsServer('github'), rules.allowsServer('files')]).toEqual([false, true])
    expect([rules.allows('tools', 'github', 'x'), rules.allows('resources', 'github', 'file:///x')]).toEqual([
      false,
      false,
    ])
  })

  test('resources and templates are matched by URI', () => {
    const rules = createPolicy(policy({ allow: { resources: ['file:///public/*'] } }))
    expect(rules.allows('resources', 'files', 'file:///public/a')).toBe(true)
    expect(rules.allows('resources', 'files', 'file:///private/a')).toBe(false)
    expect(rules.allows('templates', 'files', 'file:///public/{name}')).toBe(true)
  })

  test('read-only allows only tools with readOnlyHint', () => {
    const rules = createPolicy(policy({ readOnly: true }))
    const tool = (annotations: object) => Json.of({ name: 'x', annotations: Json.of({ ...annotations }) })
    expect(rules.allows('tools', 'a', 'x', tool({ readOnlyHint: true }))).toBe(true)
    expect(rules.allows('tools', 'a', 'x', tool({ readOnlyHint: false }))).toBe(false)
    expect(rules.allows('tools', 'a', 'x', Json.of({ name: 'x' }))).toBe(false)
    expect(rules.allows('tools', 'a', 'x')).toBe(false)
    expect([rules.allows('prompts', 'a', 'x'), rules.isOpen]).toEqual([true, false])
  })

  test('which kinds may be hidden is known', () => {
    const rules = createPolicy(policy({ allow: { servers: ['a'], prompts: ['a/*'] }, deny: { tools: [] } }))
    expect([rules.hides('tools'), rules.hides('prompts'), rules.hides('templates'), rules.isOpen]).toEqual([
      false,
      true,
      false,
      false,
    ])
    expect(createPolicy(policy({ readOnly: true })).hides('tools')).toBe(true)
  })

  test('of several policies each must allow it', () => {
    const rules = createPolicy(policy({ allow: { tools: ['a/*'] } }), policy({ deny: { tools: ['a/x'] } }))
    expect([rules.allows('tools', 'a', 'y'), rules.allows('tools', 'a', 'x'), rules.allows('tools', 'b', 'y')]).toEqual(
      [true, false, false],
    )
    expect(createPolicy(EVERYTHING, absentPolicy('p')).allowsServer('a')).toBe(false)
  })
})

describe('a resource, however it is spelled', () => {
  const SECRET = [
    'file:///secret/1',
    'FILE:///secret/1',
    'file://localhost/secret/1',
    'file:////secret/1',
    'file:///%73ecret/1',
    'file:///secret%2F1',
    'file:///public/../secret/1',
    'file:///public/%2e%2e/secret/1',
    'file:///public/..\\secret/1',
    'file:///./secret//1',
    'file:///se\tcret/1',
    ' file:///secret/1',
    'file:///secret/1?x',
    'file:///secret/1#x',
    'file:/secret/1',
    'file:secret/1',
    'file:\\\\\\secret\\1',
    'file:///public/..%2fsecret/1',
    'file:/public/../secret/1',
    'file:///ｓecret/../secret/1',
  ]

  test.each(SECRET)('is denied: %j', uri => {
    for (const pattern of ['file:///secret/*', 'file:///secret/1', 'file:///%73ecret/*'])
      expect(createPolicy(policy({ deny: { resources: [pattern] } })).allows('resources', 'a', uri)).toBe(false)
  })

  test.each(SECRET)('is not allowed with its neighbours: %j', uri => {
    const rules = createPolicy(policy({ allow: { resources: ['file:///public/*', 'note://*'] } }))
    expect(rules.allows('resources', 'a', uri)).toBe(false)
  })

  test.each([
    ['file:///a%20b.md', 'file:///a%20b.md'],
    ['file:///a b.md', 'file:///a b.md'],
    ['file:///docs/*', 'file:///docs/x/../y.md'],
    ['https://Example.test/a?b=*', 'https://Example.test/a?b=c'],
    ['doc://d#part', 'doc://d#part'],
    ['note:*', 'note:///100%'],
    ['*', 'anything'],
    ['urn:isbn:*', 'urn:isbn:0451450523'],
    ['https://example.test', 'https://example.test'],
    ['https://example.test:443/*', 'https://example.test:443/a'],
    ['https://例え.test/*', 'https://例え.test/ü'],
    ['postgres://u:p@db:5432/*', 'postgres://u:p@db:5432/x'],
    ['ui://app/*', 'ui://app/main.html?a=b#c'],
    ['test://{a}/*', 'test://{a}/x y'],
  ])('%j allows %j', (pattern, uri) => {
    expect(createPolicy(policy({ allow: { resources: [pattern] } })).allows('resources', 'a', uri)).toBe(true)
  })

  const INTERNAL = [
    'https://internal.test/keys/1',
    'https://internal.test:443/keys/1',
    'https://internal.test:0443/keys/1',
    'https://guest@internal.test/keys/1',
    'https://guest:pass@internal.test/keys/1',
    'https://ｉｎｔｅｒｎａｌ.test/keys/1',
    'https://internal。test/keys/1',
    'https://intern%61l.test/keys/1',
    'https://internal.test./keys/1',
    'HTTPS://INTERNAL.TEST/keys/1',
    'https:/internal.test/keys/1',
    'https:internal.test/keys/1',
    'https:\\\\internal.test\\keys\\1',
    'https:///internal.test/keys/1',
    'https://other@internal.test:443/open/../k%65ys/./1#part',
  ]

  test.each(INTERNAL)('of a web server is denied: %j', uri => {
    for (const pattern of [
      'https://internal.test/keys/*',
      'https://internal.test:443/keys/*',
      'HTTPS:/Internal.test/keys/1*',
    ])
      expect(createPolicy(policy({ deny: { resources: [pattern] } })).allows('resources', 'a', uri)).toBe(false)
  })

  test.each(INTERNAL)('of a web server is not allowed with its neighbours: %j', uri => {
    const rules = createPolicy(policy({ allow: { resources: ['https://internal.test/open/*', 'https://other*'] } }))
    expect(rules.allows('resources', 'a', uri)).toBe(false)
  })

  test.each([
    ['note://vault/*', 'note://VAULT/1'],
    ['note://vault/*', 'note://me@vault/1'],
    ['note://vault/*', 'note://ｖault/1'],
    ['postgres://db/secret', 'postgres://db:5432/secret'],
    ['postgres://db:5432/secret', 'postgres://user:pw@db/secret'],
    ['http://127.0.0.1/*', 'http://0x7f.1/a'],
    ['http://127.0.0.1/*', 'http://2130706433/a'],
    ['file:///caf\u00e9/*', 'file:///cafe\u0301/1'],
    ['file:///secret/*', 'file://server/secret/1'], // some servers take only the path of a file
    ['file:///secret/*', 'file://[::1]/secret/1'],
    ['file:///secret/*', 'file://me@/secret/1'],
  ])('denying %j denies %j', (pattern, uri) => {
    expect(createPolicy(policy({ deny: { resources: [pattern] } })).allows('resources', 'a', uri)).toBe(false)
  })

  test.each([
    ['https://internal.test/keys/*', 'https://internal.test:8443/keys/1'],
    ['https://internal.test/keys/*', 'https://internal.test.example/keys/1'],
    ['https://admin@internal.test/*', 'https://internal.test/1'],
    ['urn:isbn:1', 'urn:isbn:2'],
  ])('denying %j does not deny %j', (pattern, uri) => {
    expect(createPolicy(policy({ deny: { resources: [pattern] } })).allows('resources', 'a', uri)).toBe(true)
  })

  test('an allowed user info is not a wildcard, and cannot stand for another host', () => {
    const rules = createPolicy(policy({ allow: { resources: ['https://ann@internal.test/*', 'https://good.test*'] } }))
    const uris = ['https://ann@internal.test/1', 'https://internal.test/1', 'https://good.test@evil.test/1']
    expect(uris.map(uri => rules.allows('resources', 'a', uri))).toEqual([true, false, false])
  })

  test('denying a part does not deny the whole', () => {
    const rules = createPolicy(policy({ deny: { resources: ['doc://d#part'] } }))
    expect(['doc://d', 'doc://d#part'].map(uri => rules.allows('resources', 'a', uri))).toEqual([true, false])
  })

  test('allowing a part does not allow the whole', () => {
    const rules = createPolicy(policy({ allow: { resources: ['doc://d#part'] } }))
    expect(['doc://d', 'doc://d#part'].map(uri => rules.allows('resources', 'a', uri))).toEqual([false, true])
  })

  test('whatever is asked for, an open policy and one for everything allow it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), uri => {
        expect(createPolicy(policy({ allow: { resources: ['*'] } })).allows('resources', 'a', uri)).toBe(true)
      }),
    )
  })

  test('templates are matched by their text', () => {
    const rules = createPolicy(policy({ allow: { resources: ['file:///docs/{+path}'] } }))
    expect(rules.allows('templates', 'a', 'file:///docs/{+path}')).toBe(true)
  })
})

test('a second policy must allow it, too', () => {
  const also = { allow: { tools: ['a/*', 'b/x'] }, deny: { tools: ['a/drop'] }, readOnly: false }
  const rules = createPolicy({ allow: {}, deny: { tools: ['b/*'] }, readOnly: false, also })
  expect(
    ['a/read', 'a/drop', 'b/x', 'c/x'].map(name => rules.allows('tools', ...(name.split('/') as [string, string]))),
  ).toEqual([true, false, false, false])
  expect(rules.hides('tools')).toBe(true)
})
