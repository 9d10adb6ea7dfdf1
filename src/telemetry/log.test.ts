import { describe, expect, it } from 'vitest'
import { hideSecrets } from './log.ts'

const TOKEN = `drg_${'Ab-_9'.repeat(9).slice(0, 43)}`

describe('a line of the log', () => {
  it.each<object>([
    { headers: { authorization: `Bearer ${TOKEN}` } },
    { req: { headers: { Authorization: 'Basic dXNlcjpwYXNzd29yZA==' } } },
    { a: { b: { c: { d: { 'proxy-authorization': 'what"ever\\ dXNlcjpwYXNzd29yZA==' } } } } },
    { headers: { cookie: 'sid=dXNlcjpwYXNzd29yZA==', 'set-cookie': ['a=dXNlcjpwYXNzd29yZA==', 'b'] } },
    { message: `wrong: Authorization: bearer  ${TOKEN} was sent` },
    { url: `http://127.0.0.1/?token=${TOKEN}` },
    { err: { message: `no ${TOKEN}`, stack: `Error: no ${TOKEN}\n    at x (y.ts:1:1)` } },
  ])('shows no credential of %j, and is still JSON', fields => {
    const line = hideSecrets(JSON.stringify(fields))
    expect(line).not.toMatch(/Ab-_9|dXNlcjpwYXNz/)
    expect(line).toContain('[hidden]')
    expect(Object.keys(JSON.parse(line))).toEqual(Object.keys(fields))
  })

  it.each<object>([
    { message: 'a bearer token is needed', level: 30 },
    { security: 'token of another workspace', token: 'a77a8cba70' },
  ])('like %j stays as it is', fields => {
    expect(hideSecrets(JSON.stringify(fields))).toBe(JSON.stringify(fields))
  })
})
