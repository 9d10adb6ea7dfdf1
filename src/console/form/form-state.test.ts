import { describe, expect, test } from 'vitest'
import { createForm, formArguments, formProblems, shownProblems, switchMode, textError } from './form-state.ts'

const schema = {
  type: 'object',
  properties: { id: { type: 'integer' }, name: { type: 'string', minLength: 2 } },
  required: ['name'],
}

describe('form and JSON', () => {
  test('the switch keeps the value both ways, with every digit', () => {
    const json = { ...switchMode(createForm(schema), 'json'), text: '{"id": 9007199254740993, "extra": [1]}' }
    const form = switchMode(json, 'form')
    expect(form.mode).toBe('form')
    expect(switchMode(form, 'json').text.replaceAll(/\s/g, '')).toBe('{"id":9007199254740993,"extra":[1]}')
    expect(Object.keys(formArguments(form))).toEqual(['id', 'extra'])
  })

  test('a text that is no JSON stays, and names the place of the error', () => {
    const json = { ...createForm(schema), mode: 'json' as const, text: '{\n "id": }' }
    expect(textError(json)?.message).toBe('Line 2, column 8: expected a value, found "}"')
    expect(switchMode(json, 'form')).toBe(json)
    expect(textError({ ...json, text: '[1]' })?.message).toContain('Expected an object')
    expect(textError({ ...json, text: '' })).toBeUndefined()
  })
})

describe('problems', () => {
  const shown = (form: ReturnType<typeof createForm>) =>
    Object.fromEntries(shownProblems(formProblems(schema, form), form))

  test('what is missing is shown after the user was there or tried to send', () => {
    const form = createForm(schema)
    expect(shown(form)).toEqual({})
    expect(shown({ ...form, isAttempted: true })).toEqual({ '/name': 'Required' })
    expect(shown({ ...form, touched: new Set(['/name']) })).toEqual({ '/name': 'Required' })
  })

  test('everything else is shown while the user types', () => {
    expect(shown({ ...createForm(schema), value: { name: 'a', id: 1.5 } })).toEqual({
      '/name': 'At least 2 characters, this has 1',
      '/id': 'Expected a whole number',
    })
  })
})
