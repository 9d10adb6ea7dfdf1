import { expect, test } from 'vitest'
import { withoutServer } from './names.ts'

test.each([
  ['github__list_issues', 'list_issues'],
  ['github/list_issues', 'list_issues'],
  ['github__a__b', 'a__b'],
  ['github/a/b', 'a/b'],
  ['github___x', '_x'],
  ['list_issues', undefined],
  ['github', undefined],
  ['github__', undefined],
  ['github/', undefined],
  ['github_x', undefined],
  ['githubber/x', undefined],
  ['GitHub/x', undefined],
])('%s without its server is %s', (name, bare) => {
  expect(withoutServer('github', name)).toBe(bare)
})
