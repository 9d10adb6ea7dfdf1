import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const SOURCE = resolve(import.meta.dirname, '../src')

/** Who may import whom, besides itself and telemetry. What is not listed may import everything. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  stores: [],
  telemetry: [],
  protocol: ['wire'],
  eras: ['protocol', 'wire'],
  config: ['protocol'],
  auth: ['protocol', 'wire', 'stores', 'config'],
  fronts: ['protocol', 'wire', 'stores', 'config'],
  workspace: ['eras', 'protocol', 'wire', 'config'],
  bridge: ['eras', 'protocol', 'wire', 'stores'],
  upstreams: ['protocol', 'wire', 'stores', 'config', 'auth'],
  servers: ['protocol', 'wire', 'stores'],
  cli: ['upstreams', 'auth', 'stores', 'config', 'protocol', 'wire'],
}
const EVERYTHING = ['gateway.ts', 'estate.ts', 'inspect.ts', 'pipe.ts', 'main.ts']

const sources = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter(
  file => file.endsWith('.ts') && !/\.(test|fixture)\.ts$/.test(file),
)

const folderOf = (file: string): string => file.split('/')[0] ?? ''

const importsOf = (file: string): string[] => {
  const text = readFileSync(join(SOURCE, file), 'utf8')
  const paths = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(match => match[1] ?? '')
  return paths.map(path => relative(SOURCE, resolve(SOURCE, dirname(file), path)))
}

const trespasses = (file: string, imports: readonly string[]): string[] => {
  const folder = folderOf(file)
  const allowed = MAY_IMPORT[folder]
  if (EVERYTHING.includes(file) || !allowed) return EVERYTHING.includes(file) ? [] : [`${folder}/ is not in the table`]
  return imports
    .map(folderOf)
    .filter(target => target !== folder && target !== 'telemetry' && !allowed.includes(target))
    .map(target => `${file}: ${folder}/ may not import ${target}/`)
}

test('imports point down the table', () => {
  expect(sources.length).toBeGreaterThan(40)
  expect(sources.flatMap(file => trespasses(file, importsOf(file)))).toEqual([])
})

test('the table catches what it should', () => {
  expect(trespasses('wire/x.ts', ['fronts/door.ts'])).toEqual(['wire/x.ts: wire/ may not import fronts/'])
  expect(trespasses('fronts/x.ts', ['bridge/bridge.ts', 'wire/json.ts'])).toEqual([
    'fronts/x.ts: fronts/ may not import bridge/',
  ])
  expect(importsOf('gateway.ts')).toContain('fronts/door.ts')
})

// A sink that throws where no code looks at its value ends the process, or leaves the call without an answer.
const looseSinks = (text: string): string[] =>
  text
    .replace(/=>\s+/g, '=> ') // what an arrow function gives is returned
    .split('\n')
    .filter(line => /^\s*(void |if \(.*\) |else |for \(.*\) )*[\w.#?]*\bsink\(/.test(line))

test('a frame is handed to a sink by deliver, or its value is returned to the code that called', () => {
  const others = sources.filter(file => file !== 'protocol/deliver.ts')
  expect(others.flatMap(file => looseSinks(readFileSync(join(SOURCE, file), 'utf8')))).toEqual([])
  expect(looseSinks('  void this.#exchange.sink(frame)\n  if (x) exchange.sink({')).toHaveLength(2)
  expect(looseSinks('  return exchange.sink(frame)\n  frame =>\n    sink(frame)')).toEqual([])
})

test('revisions are compared in eras/ and protocol/ only; elsewhere a column of the table is read', () => {
  const dated = sources.filter(file => /'20\d\d-\d\d-\d\d'/.test(readFileSync(join(SOURCE, file), 'utf8')))
  expect(dated.filter(file => !['eras', 'protocol'].includes(folderOf(file)))).toEqual([])
})
