import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN } from '../../src/config/snapshot.ts'

const folder = mkdtempSync(join(tmpdir(), 'dragoman-docs-'))
afterAll(() => rmSync(folder, { recursive: true }))

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')

describe('the documentation', () => {
  it.each(['README.md', 'docs/configuration.md', 'docs/security.md'])('of %s shows configurations that work', async file => {
    const blocks = [...read(file).matchAll(/```json\n(\{\n.*?)```/gs)]
      .map(([, block]) => block ?? '')
      .filter(block => !block.includes('"jsonrpc"'))
    expect(blocks.length).toBeGreaterThan(0)
    for (const block of blocks) {
      const config = join(folder, 'config.json')
      writeFileSync(config, block)
      const { servers, warnings } = await loadConfig({ file: config, env: { GITHUB_TOKEN: 'x' } })
      expect(warnings).toEqual([])
      expect(
        [...servers.values()].filter(server => server.kind === 'unavailable' && !block.includes('"command"')),
      ).toEqual([])
    }
  })

  it('names every setting with its default', () => {
    const text = read('docs/configuration.md')
    for (const [name, value] of Object.entries({ ...DEFAULT_LIMITS, ...DEFAULT_LISTEN })) {
      const row = text.split('\n').find(line => line.startsWith('|') && line.includes(`\`${name}\``))
      expect(row, name).toContain(Array.isArray(value) ? '[]' : String(value))
    }
  })
})
