import { expect, it } from 'vitest'
import { spellingsOf, withoutSpellings } from './known-secrets.ts'

const SECRETS = ['hunter2', 'hunter2-prod', 'a "b" & c/d', 'short', 'odd\ud800one']
const clean = (text: string): string => withoutSpellings(text, spellingsOf(SECRETS), '[$&]')

it.each([
  ['one that is a part of another', 'it is hunter2-prod', 'it is [$&]'],
  ['in a URL', 'x?y=a%20%22b%22%20%26%20c%2Fd', 'x?y=[$&]'],
  ['in a form', 'y=a+%22b%22+%26+c%2Fd&z', 'y=[$&]&z'],
  ['in JSON', JSON.stringify({ text: 'a "b" & c/d' }), '{"text":"[$&]"}'],
  ['in JSON within JSON', JSON.stringify(JSON.stringify('a "b" & c/d')), JSON.stringify(JSON.stringify('[$&]'))],
  ['a short one, which ordinary text may hold', 'shortly', 'shortly'],
])('%s', (_what, text, expected) => {
  expect(clean(text)).toBe(expected)
})
