import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { DEFAULT_RECORDER } from '../../../src/config/recorder.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, DEFAULT_PROCESS_LIMITS } from '../../../src/config/snapshot.ts'

const folder = mkdtempSync(join(tmpdir(), 'dragoman-docs-'))
afterAll(() => rmSync(folder, { recursive: true }))

const ROOT = resolve(import.meta.dirname, '../../..')
const { enabled: _on, ...RECORDER } = DEFAULT_RECORDER // other clients have an `enabled`, too
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

describe('the documentation', () => {
  it.each([
    'README.md',
    'docs/configuration.md',
    'docs/memory.md',
    'docs/oauth.md',
    'docs/observability.md',
    'docs/processes.md',
    'docs/security.md',
    'docs/tool-budget.md',
    'docs/workspaces.md',
  ])('of %s shows configurations that work', async file => {
    const blocks = [...read(file).matchAll(/```json\n(\{\n.*?)```/gs)]
      .map(([, block]) => block ?? '')
      .filter(block => /"(mcpServers|listen|limits|auth|workspaces|sse|audit|telemetry)":/.test(block))
      .filter(block => !block.includes('"args": ["stdio"')) // for a client
    expect(blocks.length).toBeGreaterThan(0)
    for (const block of blocks) {
      const config = join(folder, 'config.json')
      writeFileSync(config, block)
      const { servers, warnings } = await loadConfig({
        file: config,
        env: { GITHUB_TOKEN: 'x', DATABASE_PASSWORD: 'x', MODEL_KEY: 'x', GITHUB_SECRET: 'x', CORP_SECRET: 'x' },
      })
      expect(warnings).toEqual([])
      expect(
        [...servers.values()].filter(server => server.kind === 'unavailable' && !block.includes('"command"')),
      ).toEqual([])
    }
  })

  it.each<[string, object]>([
    ['docs/configuration.md', { ...DEFAULT_LIMITS, ...DEFAULT_LISTEN, ...RECORDER }],
    ['docs/processes.md', DEFAULT_PROCESS_LIMITS],
  ])('of %s names every setting with its default', (file, defaults) => {
    const text = read(file)
    for (const [name, value] of Object.entries(defaults)) {
      const row = text.split('\n').find(line => line.startsWith('|') && line.includes(`\`${name}\``))
      expect(row, name).toContain(Array.isArray(value) ? '[]' : String(value))
    }
  })

  const pages = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter(
    file => /^([^/]+|(docs|examples|test|\.github)\/.*)\.md$/.test(file) && !file.includes('node_modules'),
  )
  const decisions = readdirSync(join(ROOT, 'docs/decisions')).map(file => `docs/decisions/${file}`)
  it.each(['ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/eras.md', ...decisions])(
    'of %s names files that exist',
    page => {
      const paths = [...read(page).matchAll(/`((?:[\w-]+\/){2,}|(?:[\w-]+\/)+[\w.-]+\.ts)`/g)].map(
        ([, path = '']) => path,
      )
      expect(paths.filter(path => !existsSync(join(ROOT, path)) && !existsSync(join(ROOT, 'src', path)))).toEqual([])
    },
  )

  it.each(pages)('of %s has no broken link', page => {
    for (const [, target = ''] of withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? join(ROOT, page) : resolve(ROOT, dirname(page), path)
      expect(existsSync(file), target).toBe(true)
      if (anchor !== undefined && statSync(file).isFile())
        expect(anchorsOf(readFileSync(file, 'utf8'))).toContain(anchor)
    }
  })
})

const withoutCode = (text: string): string => text.replace(/^```.*?^```/gms, '').replace(/`[^`\n]*`/g, '')

/** The anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (text: string): string[] =>
  [...text.replace(/^```.*?^```/gms, '').matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
