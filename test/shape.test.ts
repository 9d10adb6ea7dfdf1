import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readCode, repeatedRuns, shapeOf } from './support/repeated-runs.ts'

const ROOT = resolve(import.meta.dirname, '..')

const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith(ending))
    .map(file => join(folder, file))

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const sources = [...filesIn('src', '.ts'), ...filesIn('src', '.tsx')].filter(file => !/\.test\.tsx?$/.test(file))
const isConsole = (file: string): boolean => file.startsWith(join('src', 'console'))
const linesOf = (file: string): number => read(file).split('\n').length - 1

describe('source files', () => {
  test('have at most 400 lines', () => {
    expect(sources.filter(file => linesOf(file) > 400)).toEqual([])
  })

  const SHORT: ReadonlySet<string> = new Set([
    'src/servers/memory/thread-entry.ts', // a worker thread needs a file to start with
    'src/servers/define/failures.ts', // authors of servers import it alone
    'src/workspace/member.ts', // the type that every part of a workspace uses
  ])
  test('have at least 15 lines', () => {
    expect(sources.filter(file => linesOf(file) < 15 && !SHORT.has(file))).toEqual([])
  })

  test('have a comment that says what they hold', () => {
    expect(sources.filter(file => !/^(\/\*\*|\/\/)/m.test(read(file)))).toEqual([])
  })

  test('are few for the lines they hold', () => {
    const files = sources.filter(file => !isConsole(file)) // a part of a page is a file, small as it may be
    const lines = files.reduce((sum, file) => sum + linesOf(file), 0)
    expect(lines / files.length).toBeGreaterThan(100)
  })
})

test('no module of a gateway loads the data of locales, which takes 9 ms of CPU and 7 MiB', () => {
  const late = 'src/servers/memory/text/dates.ts' // in the thread of a memory
  const users = sources.filter(file => !isConsole(file) && /\bIntl\.|\.toLocale|\.localeCompare\(/.test(read(file)))
  expect(users).toEqual([late])
})

describe('repeated code', () => {
  const all = [...filesIn('src', '.ts'), ...filesIn('src', '.tsx')].map(file => readCode(file, read(file)))
  const product = all.filter(({ file }) => sources.includes(file))
  const LONGEST = 12 // lines that two places may share

  test('has at most 12 equal lines', () => {
    expect(all.length).toBeGreaterThan(800)
    expect(repeatedRuns(all, { longest: LONGEST })).toEqual([])
  })

  test('has at most 12 lines of the same shape', () => {
    // A run of fewer different lines is rows of a table: they look alike, and are data.
    expect(repeatedRuns(product, { longest: LONGEST, shape: shapeOf, fewestDistinct: 7 })).toEqual([])
  })

  test('is found by its lines, and by its shape', () => {
    const body = Array.from({ length: 13 }, (_, at) => `  ${'await '.repeat(at)}call(${at})`)
    const renamed = body.map(line => line.replace('call', 'other'))
    const files = [
      readCode('a.ts', `import { call } from './call.ts'\n\n${body.join('\n')}`),
      readCode('b.ts', `// why\n${body.join('\n\n')}\nend()`),
      readCode('c.ts', renamed.join('\n')),
    ]
    expect(repeatedRuns(files, { longest: LONGEST })).toEqual(['a.ts:3 ~ b.ts:2'])
    expect(repeatedRuns(files, { longest: LONGEST, shape: shapeOf, fewestDistinct: 7 })).toEqual([
      'a.ts:3 ~ b.ts:2',
      'a.ts:3 ~ c.ts:1',
    ])
    expect(repeatedRuns(files, { longest: LONGEST + 1 })).toEqual([])
  })
})

describe('exported names', () => {
  /** The same thing once per file: a revision's difference, a command's entry point. */
  const REPEATED: ReadonlySet<string> = new Set(['difference', 'run'])
  const EXPORT = /^export (?:declare |abstract |async )*(?:class|function|const|let|interface|type|enum) (\w+)/gm

  const PROGRAMS = { gateway: (file: string) => !isConsole(file), console: isConsole }
  test.each(Object.entries(PROGRAMS))('mean one thing each in the %s', (_name, isPart) => {
    const places = new Map<string, string[]>()
    for (const file of sources.filter(isPart))
      for (const name of new Set([...read(file).matchAll(EXPORT)].map(match => match[1] ?? '')))
        places.set(name, [...(places.get(name) ?? []), file])
    const repeated = [...places].filter(([name, files]) => files.length > 1 && !REPEATED.has(name))
    expect(Object.fromEntries(repeated)).toEqual({})
  })
})

describe('words', () => {
  const UNCLEAR = /\b(somebody|whoever|nobody)\b/i

  test.each([
    ['src', '.ts'],
    ['src', '.tsx'],
    ['docs', '.md'],
    ['examples', '.md'],
  ])('name the actor in %s', (folder, ending) => {
    const lines = filesIn(folder, ending).flatMap(file =>
      read(file)
        .split('\n')
        .flatMap((line, at) => (UNCLEAR.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : [])),
    )
    expect(lines).toEqual([])
  })
})
