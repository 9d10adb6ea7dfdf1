import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createProject } from '../../../test/support/project.ts'
import { createRoot, type Root } from './root.ts'
import { createWatcher } from './watch.ts'

test('a folder that is removed during the walk does not end the watch over the others', async () => {
  const project = createProject({ 'a/1': '', 'b/1': '', 'c/1': '' })
  const real = createRoot(project.root)
  const root: Root = {
    ...real,
    find: path => {
      if (path === 'b') rmSync(join(project.root, 'b'), { recursive: true, force: true })
      return real.find(path)
    },
  }
  const changed = new Set<string>()
  const watcher = createWatcher(root, { onChange: path => void changed.add(path), onRename: () => {} })
  watcher.hold('')
  await watcher.settled()
  project.write('c/2', '')
  await expect.poll(() => [...changed]).toContain('c/2')
  watcher.close()
  project.remove()
})
