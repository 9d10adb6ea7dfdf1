import { describe, expect, it } from 'vitest'
import { editsBetween, editsOf, rebase, renameKey, withValue } from './edits.ts'
import { renameServer } from './server-rename.ts'

const ROOT = {
  mcpServers: { a: { command: 'x', env: { K: '1' } }, b: { url: 'u' } },
  workspaces: {
    default: { servers: ['a', 'b'], tools: { 'a/t': { hidden: true } }, policy: { deny: { tools: ['a/x', 'b/*'] } } },
  },
  policies: { guest: { allow: { servers: ['a'], resources: ['a/'] }, readOnly: true } },
}
const draftOf = (value: object = ROOT) => ({ root: ROOT, value: value as typeof ROOT, renames: [] })

describe('editsBetween', () => {
  it('finds the smallest edits, with the value before', () => {
    const after = { ...ROOT, mcpServers: { a: { command: 'y', env: { K: '1', L: '2' } }, c: { url: 'v' } } }
    expect(editsBetween(ROOT, after)).toEqual([
      { kind: 'remove', path: ['mcpServers', 'b'], before: { url: 'u' } },
      { kind: 'set', path: ['mcpServers', 'a', 'command'], value: 'y', before: 'x' },
      { kind: 'set', path: ['mcpServers', 'a', 'env', 'L'], value: '2' },
      { kind: 'set', path: ['mcpServers', 'c'], value: { url: 'v' } },
    ])
  })

  it('finds none where a value was set back', () => {
    const changed = withValue(
      withValue(ROOT, ['mcpServers', 'b', 'timeout'], 5),
      ['mcpServers', 'b', 'timeout'],
      undefined,
    )
    expect(editsBetween(ROOT, changed)).toEqual([])
  })
})

describe('renames', () => {
  it('keep the place of a key, and become one edit', () => {
    const renamed = renameKey(renameKey(draftOf(), ['mcpServers', 'a'], 'n'), ['mcpServers', 'n'], 'm')
    expect(Object.keys(renamed.value.mcpServers as object)).toEqual(['m', 'b'])
    expect(editsOf(renamed)).toEqual([{ kind: 'rename', path: ['mcpServers', 'a'], to: 'm' }])
    expect(editsOf(renameKey(renamed, ['mcpServers', 'm'], 'a'))).toEqual([])
  })

  it('of a key that is new need no edit of their own', () => {
    const added = draftOf(withValue(ROOT, ['mcpServers', 'n'], { url: 'w' }))
    expect(editsOf(renameKey(added, ['mcpServers', 'n'], 'm'))).toEqual([
      { kind: 'set', path: ['mcpServers', 'm'], value: { url: 'w' } },
    ])
  })

  it('of a server change every place that names it', () => {
    const { value } = renameServer(draftOf(), ['mcpServers', 'a'], 'n')
    expect(value).toMatchObject({
      workspaces: {
        default: {
          servers: ['n', 'b'],
          tools: { 'n/t': { hidden: true } },
          policy: { deny: { tools: ['n/x', 'b/*'] } },
        },
      },
      policies: { guest: { allow: { servers: ['n'], resources: ['a/'] } } },
    })
    expect(JSON.stringify(value)).not.toContain('"a/t"')
  })
})

describe('rebase', () => {
  it('keeps what others have changed', () => {
    const mine = draftOf(withValue(ROOT, ['mcpServers', 'a', 'env', 'L'], '2'))
    const theirs = withValue(withValue(ROOT, ['mcpServers', 'a', 'command'], 'z'), ['mcpServers', 'b'], undefined)
    expect(rebase(mine, theirs).value).toEqual({
      ...ROOT,
      mcpServers: { a: { command: 'z', env: { K: '1', L: '2' } } },
    })
  })

  it('keeps a rename, and forgets that of a key which is gone', () => {
    const mine = renameKey(draftOf(), ['mcpServers', 'a'], 'n')
    expect(rebase(mine, withValue(ROOT, ['mcpServers', 'b'], undefined)).renames).toEqual(mine.renames)
    expect(rebase(mine, withValue(ROOT, ['mcpServers', 'a'], undefined)).renames).toEqual([])
  })
})
