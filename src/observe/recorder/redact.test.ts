import { describe, expect, test } from 'vitest'
import { createRedactor } from './redact.ts'

const redactor = createRedactor({ names: ['customerNumber'], secrets: () => ['own-secret-of-the-gateway'] })
const json = (value: unknown): unknown => JSON.parse(redactor.json(JSON.stringify(value)))

describe('members named like secrets', () => {
  test.each([
    ...[
      'password',
      'Password',
      'db_password',
      'PASSWD',
      'passphrase',
      'pwd',
      'secret',
      'clientSecret',
      'client_secret',
    ],
    ...['token', 'accessToken', 'refresh_token', 'id-token', 'apiKey', 'api_key', 'X-API-Key', 'APIKEY', 'apikey'],
    ...['authorization', 'Proxy-Authorization', 'cookie', 'Set-Cookie', 'credential', 'credentials', 'privateKey'],
    ...['private_key', 'aws_secret_access_key', 'accessKey', 'signingKey', 'otp', 'pin', 'jwt', 'x-csrf-token'],
    ...['customerNumber', 'customer_number', 'Customer-Number'],
  ])('%s', name => {
    expect(json({ arguments: { [name]: 'abc', kept: 'abc' } })).toEqual({
      arguments: { [name]: '[redacted]', kept: 'abc' },
    })
    expect(json({ _meta: { [name]: { value: ['abc', 1] } } })).toEqual({ _meta: { [name]: '[redacted]' } })
  })

  test.each(['progressToken', 'nextPageToken', 'maxTokens', 'key', 'author', 'passenger', 'tokenizer', 'secretary'])(
    '%s is none',
    name => {
      expect(json({ [name]: 'abc' })).toEqual({ [name]: 'abc' })
    },
  )

  test('numbers are hidden as well, but not where they count', () => {
    const shown = { password: '[redacted]', pin: '[redacted]', tokens: 7, tokenCount: 7, inputTokens: 7, token: null }
    expect(json({ password: 1234, pin: 1234, tokens: 7, tokenCount: 7, inputTokens: 7, token: null })).toEqual(shown)
    expect(json({ hasToken: true, tokens: ['abc'] })).toEqual({ hasToken: true, tokens: '[redacted]' })
  })

  test('a schema that describes a secret is shown, without its default', () => {
    const schema = {
      type: 'object',
      properties: { password: { type: 'string', description: 'Yours', default: 'abc', examples: ['abc'] } },
      required: ['password'],
    }
    expect(json({ inputSchema: schema })).toEqual({
      inputSchema: {
        ...schema,
        properties: {
          password: { type: 'string', description: 'Yours', default: '[redacted]', examples: '[redacted]' },
        },
      },
    })
    expect(json({ properties: { password: 'abc' } })).toEqual({ properties: { password: '[redacted]' } })
  })

  test('a pair of a name and a value', () => {
    const given = [
      { name: 'API_KEY', value: 'abc' },
      { name: 'city', value: 'Bern' },
    ]
    expect(json({ env: given })).toEqual({ env: [{ name: 'API_KEY', value: '[redacted]' }, given[1]] })
  })

  test('names with escapes, in any order and more than once', () => {
    expect(redactor.json('{"pass\\u0077ord" : "abc", "password":"def"}')).toBe(
      '{"pass\\u0077ord" : "[redacted]", "password":"[redacted]"}',
    )
  })
})

describe('texts', () => {
  test.each([
    ['a bearer token', 'Authorization: Bearer abcdefgh12345678'],
    ['basic credentials', 'basic dXNlcjpwYXNzd29yZA=='],
    ['a token of the gateway', `drg_${'a1'.repeat(16)}`],
    ['GitHub', `ghp_${'a1B2'.repeat(9)}`],
    ['GitHub, fine-grained', `github_pat_${'a1B2'.repeat(9)}`],
    ['GitLab', `glpat-${'a1B2'.repeat(6)}`],
    ['Slack', 'xoxb-123456789012-abcdefghijkl'],
    ['OpenAI', `sk-proj-${'a1B2'.repeat(8)}`],
    ['Stripe', `sk_live_${'a1B2'.repeat(6)}`],
    ['AWS', 'AKIAIOSFODNN7EXAMPLE'],
    ['Google', `AIza${'a1B2_'.repeat(7)}`],
    ['npm', `npm_${'a1B2'.repeat(9)}`],
    ['a JSON Web Token', `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${'a1B2'.repeat(8)}`],
    ['a private key', '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----'],
    ['credentials in a URL', 'postgres://ann:s3cr3t-pw@db.example.com/app'],
    ['a parameter of a URL', 'https://example.com/a?x=1&access_token=s3cr3t-pw&y=2'],
    ['a webhook', 'https://hooks.slack.com/services/T000/B000/XXXXXXXXXXXX'],
    [
      'a link to a login',
      'Open http://127.0.0.1:8765/oauth/login/s3cr3t-pw-of-twenty-two-characters within 10 minutes',
    ],
    ['an assignment', 'export DB_PASSWORD=s3cr3t-pw'],
    ['JSON within a text', '{"password":"s3cr3t-pw","city":"Bern"}'],
    ['a secret of the gateway', 'it says own-secret-of-the-gateway here'],
  ])('%s', (_name, text) => {
    const secret =
      /s3cr3t-pw|own-secret-of-the-gateway|MIIEow|XXXXXXXXXXXX|\w[\w.=/-]{15,}$|abcdefgh12345678/.exec(text)?.[0] ??
      text
    for (const shown of [redactor.text(text), redactor.json(JSON.stringify({ content: [{ text: `see ${text}` }] }))]) {
      expect(shown).toContain('[redacted]')
      expect(shown).not.toContain(secret)
    }
    expect(() => json({ text })).not.toThrow()
  })

  test.each([
    'Keep it secret: keep it safe',
    'The token of progress',
    'a basic idea',
    'pass the salt',
    'https://a.b/c@d',
  ])('%s has none', text => {
    expect(json({ text })).toEqual({ text })
  })

  test('escapes do not hide a token', () => {
    expect(redactor.json('{"text":"Bearer \\u0061bcdefgh12345678"}')).toBe('{"text":"Bearer [redacted]"}')
  })
})

test('everything else stays as it came: numbers, spaces, order', () => {
  const text = '{ "b" : 12345678901234567890 ,\n"a":[1.0, 2e3,"\\u00e9",{}], "token":"x", "a":null }'
  expect(redactor.json(text)).toBe(text.replace('"x"', '"[redacted]"'))
})

test('ids that may be credentials are shortened', () => {
  expect(json({ requestState: 'gw2.0123456789', sessionId: 'short' })).toEqual({
    requestState: 'gw2.0123…',
    sessionId: 'short',
  })
  expect(redactor.header('mcp-session-id', '0123456789abcdef')).toBe('01234567…')
  expect(redactor.header('mcp-param-api-key', 'abc')).toBe('[redacted]')
  expect(redactor.header('mcp-name', 'file:///x?token=abcdef')).toBe('file:///x?token=[redacted]')
  expect(redactor.header('mcp-method', 'tools/call')).toBe('tools/call')
})

test.each([
  ['{"password":"hunter2hun', '{"password":"[redacted]"'],
  ['{"a":1,"password":{"x":"hunter2hun', '{"a":1,"password":"[redacted]"'],
  ['{"text":"Bearer abcdefgh12345678', '{"text":"Bearer [redacted]"'],
  ['{"tex', '{"tex'],
])('a text that was cut: %s', (cut, shown) => {
  expect(redactor.json(cut)).toBe(shown)
})

test('a hostile text takes no longer than any other', () => {
  const begun = performance.now()
  for (const part of [
    'a',
    'eyJ',
    'https://',
    'password',
    '"',
    '\\',
    'Bearer ',
    'sk-',
    '-----BEGIN PRIVATE KEY-----',
    '?a=',
    '://a',
  ])
    for (const text of [
      part.repeat(65_536 / part.length),
      JSON.stringify({ [part]: part.repeat(65_536 / part.length) }),
    ])
      redactor.json(text)
  expect(performance.now() - begun).toBeLessThan(3000)
})
