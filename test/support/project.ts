import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A folder with two neighbours: `Root` is served, `root` and `Root2` beside it are not. */
export interface Project {
  readonly root: string
  readonly outside: string
  write(path: string, content: string | Buffer): void
  link(target: string, path: string): void
  remove(): void
}

export const createProject = (files: Readonly<Record<string, string | Buffer>> = {}): Project => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'dragoman-files-')))
  const root = join(base, 'Root')
  const write = (path: string, content: string | Buffer): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  for (const folder of ['Root', 'root', 'Root2', 'outside']) {
    mkdirSync(join(base, folder), { recursive: true })
    if (folder !== 'Root') writeFileSync(join(base, folder, 'secret.txt'), 'secret')
  }
  for (const [path, content] of Object.entries(files)) write(path, content)
  return {
    root,
    outside: join(base, 'outside'),
    write,
    link: (target, path) => symlinkSync(target, join(root, path)),
    remove: () => rmSync(base, { recursive: true, force: true }),
  }
}
