import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const PAGE = join(resolve(import.meta.dirname, '../..'), 'docs/cli-examples.md')
const HEAD = `# What the examples print

Every example of \`dragoman <command> --help\` and of [the command line](cli.md), with its output in a pipe. Versions, ports, times and
paths are replaced. The tests compare this page with what the commands print.
`

/** What differs from run to run, and what the page has instead. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/[ \t]+$/gm, ''],
  [/http:\/\/127\.0\.0\.1:\d+/g, 'http://127.0.0.1:8765'],
  [/\bcode=[\w-]+/g, 'code=<code>'],
  [/\b\d+(\.\d+)? ms\b/g, '1 ms'],
  [/"(\w+Ms)": [\d.]+/g, '"$1": 1'],
  [/\b\d+\.\d+ s\b/g, '1.0 s'],
  [/\bup [\dhms ]+(?=,)/g, 'up 1m'],
  [/\bprocess \d+/g, 'process 1234'],
  [/\b\d+ MB\b/g, '100 MB'],
  [/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, '2026-01-01T00:00:00.000Z'],
  [/\b\d{2}:\d{2}:\d{2}\.\d{3}\b/g, '12:00:00.000'],
  [/\b\d{8}-\d{6}-\d+\b/g, '20260101-120000-000'],
  [/^(\S+ +ready +)\d+s( +\S+ +\d+ +)\d+$/gm, '$11s$21'],
  [/^(\S+ +ready +)\d+s/gm, '$11s'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '00000000-0000-4000-8000-000000000000'],
  [/ (working +)\d+s/g, ' $11s'],
  [/^store: \w+/gm, 'store: sqlite'],
  [/^Waiting for .* \.\.\.\n\n/gm, ''],
  [/\/\S*\/dragoman-[\w-]+\/?/g, '~/'],
]

/** The output as the page shows it; `replaced`: further texts of this test, like a path, and what stands for them. */
export const normalizeOutput = (text: string, replaced: Readonly<Record<string, string>> = {}): string => {
  let normal = text
  for (const [from, to] of Object.entries(replaced)) normal = normal.replaceAll(from, to)
  for (const [pattern, to] of VARYING) normal = normal.replaceAll(pattern, to)
  return normal.trimEnd()
}

const blockOf = (line: string, output: string): string =>
  `\`\`\`console\n$ ${line}\n${output === '' ? '' : `${output}\n`}\`\`\`\n`

/** The documented output of each example, by its command line. */
export const documentedOutputs = (): ReadonlyMap<string, string> => {
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : ''
  const blocks = [...page.matchAll(/^```console\n\$ ([^\n]*)\n(.*?)^```/gms)]
  return new Map(blocks.map(([, line = '', output = '']) => [line, output.trimEnd()]))
}

/** Whether the page is to be written anew instead of compared: `WRITE_EXAMPLES=1 npx vitest run test/e2e/cli/…`. */
export const IS_WRITING = process.env.WRITE_EXAMPLES !== undefined

/** Writes the outputs of these examples to the page, and keeps the others. */
export const writeOutputs = (outputs: ReadonlyMap<string, string>): void => {
  const all = new Map([...documentedOutputs(), ...outputs])
  const commandOf = (line: string): string => /\bdragoman (\w+)/.exec(line)?.[1] ?? ''
  const commands = [...new Set([...all.keys()].map(commandOf))].sort()
  const sections = commands.map(command => {
    const blocks = [...all]
      .filter(([line]) => commandOf(line) === command)
      .map(([line, output]) => blockOf(line, output))
    return `\n## ${command}\n\n${blocks.join('\n')}`
  })
  writeFileSync(PAGE, HEAD + sections.join(''))
}
