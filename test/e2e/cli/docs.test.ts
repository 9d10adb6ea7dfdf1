import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, DEFAULT_PROCESS_LIMITS } from '../../../src/config/snapshot.ts'

const folder = mkdtempSync(join(tmpdir(), 'dragoman-docs-'))
afterAll(() => rmSync(folder, { recursive: true }))

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8')

describe('the documentation', () => {
  it.each(['README.md', 'docs/configuration.md', 'docs/memory.md', 'docs/processes.md', 'docs/security.md'])(
    'of %s shows configurations that work',
    async file => {
      const blocks = [...read(file).matchAll(/```json\n(\{\n.*?)```/gs)]
        .map(([, block]) => block ?? '')
        .filter(block => /"(mcpServers|listen|limits|auth|workspaces|sse)":/.test(block))
      expect(blocks.length).toBeGreaterThan(0)
      for (const block of blocks) {
        const config = join(folder, 'config.json')
        writeFileSync(config, block)
        const { servers, warnings } = await loadConfig({
          file: config,
          env: { GITHUB_TOKEN: 'x', DATABASE_PASSWORD: 'x', MODEL_KEY: 'x' },
        })
        expect(warnings).toEqual([])
        expect(
          [...servers.values()].filter(server => server.kind === 'unavailable' && !block.includes('"command"')),
        ).toEqual([])
      }
    },
  )

  it.each<[string, object]>([
    ['docs/configuration.md', { ...DEFAULT_LIMITS, ...DEFAULT_LISTEN }],
    ['docs/processes.md', DEFAULT_PROCESS_LIMITS],
  ])('of %s names every setting with its default', (file, defaults) => {
    const text = read(file)
    for (const [name, value] of Object.entries(defaults)) {
      const row = text.split('\n').find(line => line.startsWith('|') && line.includes(`\`${name}\``))
      expect(row, name).toContain(Array.isArray(value) ? '[]' : String(value))
    }
  })
})
