import { expect, test } from 'vitest'
import { createRequestGuard } from './guard.ts'

const guard = createRequestGuard({
  host: '127.0.0.1',
  port: 8765,
  allowedHosts: ['gw.test'],
  allowedOrigins: [],
  exposeMetrics: false,
  trustedProxies: [],
})

test('a request is judged alike, whatever came before it', () => {
  const judged: readonly (readonly [Parameters<typeof guard>[0], RegExp | undefined])[] = [
    [{ host: 'localhost:8765', origin: undefined }, undefined],
    [{ host: 'gw.test', origin: undefined }, undefined],
    [{ host: undefined, origin: undefined }, /missing or malformed/],
    [{ host: 'evil.test', origin: undefined }, /Host evil\.test is not served/],
    [{ host: 'localhost:8765', origin: 'http://evil.test' }, /Origin http:\/\/evil\.test is not allowed/],
    [{ host: 'localhost:8765', origin: undefined, fetchSite: 'cross-site' }, /Sec-Fetch-Site is cross-site/],
    [{ host: 'localhost:8765', origin: undefined, fetchSite: 'cross-site', isPageVisit: true }, undefined],
    [{ host: 'localhost:8765', origin: 'http://localhost:8765' }, undefined],
  ]
  for (const [first] of judged)
    for (const [request, refusal] of judged) {
      guard(first)
      if (refusal) expect(guard(request)).toMatch(refusal)
      else expect(guard(request)).toBeUndefined()
    }
})
