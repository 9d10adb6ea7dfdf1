import { describe, expect, it } from 'vitest'
import { fillIn } from './variables.ts'

const env = { TOKEN: 'secret', EMPTY: '' }
const textOf = (text: string): string | undefined => {
  const filled = fillIn(text, env)
  return filled.kind === 'text' ? filled.text : undefined
}

describe('fillIn', () => {
  it.each([
    ['plain $TOKEN {TOKEN}', 'plain $TOKEN {TOKEN}'],
    ['Bearer ${TOKEN}', 'Bearer secret'],
    ['${env:TOKEN}', 'secret'],
    ['${TOKEN}-${TOKEN}', 'secret-secret'],
    ['${EMPTY}', ''],
    ['${EMPTY:-other}', 'other'],
    ['${UNSET:-}', ''],
    ['${UNSET:-http://localhost:1/x}', 'http://localhost:1/x'],
    ['${TOKEN:-other}', 'secret'],
  ])('%s becomes %s', (text, expected) => {
    expect(textOf(text)).toBe(expected)
  })

  it('names the variable that is not set', () => {
    expect(fillIn('${TOKEN} ${UNSET}', env)).toEqual({ kind: 'missing', reason: 'the variable UNSET is not set' })
  })

  it('does not send a reference it does not understand as it stands', () => {
    expect(fillIn('${input:token}', env)).toMatchObject({
      kind: 'missing',
      reason: expect.stringContaining('${input:token}'),
    })
  })

  it('does not read what every object inherits', () => {
    expect(fillIn('${constructor}', env).kind).toBe('missing')
  })
})
