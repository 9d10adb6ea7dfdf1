import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const SOURCE = resolve(import.meta.dirname, '../src')

/** Who may import whom, besides itself, std and telemetry. What is not listed may import everything. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  std: [],
  start: [],
  wire: [],
  stores: [],
  text: [],
  telemetry: [],
  protocol: ['wire'],
  eras: ['protocol', 'wire'],
  config: ['protocol'],
  auth: ['protocol', 'wire', 'stores', 'config'],
  fronts: ['protocol', 'wire', 'stores', 'config'],
  console: ['admin', 'protocol'], // types of admin/, and tables of protocol/: it runs in browsers
  admin: ['fronts', 'protocol', 'wire', 'config'],
  workspace: ['eras', 'protocol', 'wire', 'config', 'text'],
  health: ['protocol', 'wire', 'config'],
  observe: ['protocol', 'wire'],
  safety: ['protocol', 'wire', 'stores'],
  bridge: ['eras', 'protocol', 'wire', 'stores'],
  upstreams: ['protocol', 'wire', 'stores', 'config', 'auth'],
  servers: ['protocol', 'wire', 'stores', 'text'],
  doctor: ['upstreams', 'config', 'protocol', 'wire'],
  workers: ['stores'],
  app: [
    'workers',
    'admin',
    'fronts',
    'workspace',
    'bridge',
    'health',
    'observe',
    'safety',
    'upstreams',
    'servers',
    'cli',
    'auth',
    'eras',
    'stores',
    'config',
    'protocol',
    'wire',
  ],
  cli: ['workers', 'doctor', 'upstreams', 'servers', 'auth', 'stores', 'config', 'protocol', 'wire'],
}
const EVERYTHING = ['main.ts', 'index.ts']

const sources = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter(
  file => /\.tsx?$/.test(file) && !/\.(test|fixture)\.tsx?$/.test(file),
)

/** Folders that every other one may import. */
const FOR_ALL: ReadonlySet<string> = new Set(['std', 'telemetry'])

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
    .filter(target => target !== folder && !FOR_ALL.has(target) && !allowed.includes(target))
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
  expect(importsOf('app/gateway.ts')).toContain('fronts/http/mcp-endpoint.ts')
})

test('the console has only types of the gateway, and no HTML that is text', () => {
  const console = sources.filter(file => folderOf(file) === 'console')
  expect(console.length).toBeGreaterThan(20)
  const textOf = (file: string): string => readFileSync(join(SOURCE, file), 'utf8')
  const RUNS_NODE = /^import (?!type )(?:(?!\bfrom\b)[^;])*from '(?:node:|[./]+admin\/)/m
  const WRITES_HTML = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|createContextualFragment/i
  expect(console.filter(file => RUNS_NODE.test(textOf(file)))).toEqual([])
  expect(console.filter(file => WRITES_HTML.test(textOf(file)))).toEqual([])
})

// A sink that throws where no code looks at its value ends the process, or leaves the call without an answer.
const SINK_CALL = /\bsink(?:\?\.)?\(/g
const IS_RETURNED = /(?:\breturn|=>)(?:(?!\bvoid\b|\breturn\b|=>)[^{};=]|[=!]==)*$/ // no statement or assignment between
const isReturned = (before: string): boolean => {
  const outer = before.replace(/\([^(){}]*\)|\{[^(){}]*\}/g, '')
  return outer === before ? IS_RETURNED.test(before) : isReturned(outer)
}
const looseSinks = (text: string): string[] =>
  text
    .replace(/\n\s*(?=[?:] )|(?<==>)\s+|(?<=\? .*:)\n\s*/g, ' ') // one line for what an arrow function or a condition gives
    .split('\n')
    .filter(line => [...line.matchAll(SINK_CALL)].some(({ index }) => !isReturned(line.slice(0, index))))

/** Files that may keep the value of a sink. */
const CALLS_SINKS: ReadonlySet<string> = new Set([
  'protocol/deliver.ts',
  'upstreams/session/call.ts', // catches what the sink throws, and tells the server too
  'upstreams/session/lease.ts', // returns the value after it has counted the call
])

test('a frame is handed to a sink by deliver, or its value is returned to the code that called', () => {
  const others = sources.filter(file => !CALLS_SINKS.has(file))
  const loose = others.flatMap(file =>
    looseSinks(readFileSync(join(SOURCE, file), 'utf8')).map(line => `${file}: ${line.trim()}`),
  )
  expect(loose).toEqual([])
})

test.each([
  'void this.#exchange.sink(frame)',
  'if (x) exchange.sink({',
  'for (const id of ids) void settle(id)?.sink(frame)',
  'this.#calls.find(({ id }) => id === 1)?.exchange.sink(frame)',
  'return void exchange.sink(frame)',
  'if (closed) return void exchange.sink(frame)',
  'const waiting = exchange.sink(frame)',
  'const take = () => { exchange.sink(frame) }',
  'exchange.sink?.(frame)',
  'return left(), void exchange.sink(frame)',
])('a sink whose value is lost is found: %s', line => {
  expect(looseSinks(line)).toEqual([line])
})

test.each([
  'return exchange.sink(frame)',
  'return isFirst ? this.#exchange.sink(frame) : this.#end(cursor)',
  'if (a === b) return sink(frame)',
  'frame =>\n    sink(frame)',
  "frame =>\n  frame.kind === 'question'\n    ? refuse(frame)\n    : exchange.sink(frame)",
  'void deliver(exchange.sink, frame)',
  "frame => frame.kind === 'question' ? frame.answer({ kind: 'error', error: NONE }) : exchange.sink(frame),",
  'const behind = frames.flatMap(each => sink(each) ?? [])',
])('a sink whose value is returned is not found: %s', text => {
  expect(looseSinks(text)).toEqual([])
})

test('revisions are compared in eras/ and protocol/ only; elsewhere a column of the table is read', () => {
  const dated = sources.filter(file => /'20\d\d-\d\d-\d\d'/.test(readFileSync(join(SOURCE, file), 'utf8')))
  expect(dated.filter(file => !['eras', 'protocol'].includes(folderOf(file)))).toEqual([])
})
