/** A file as its lines that count: no blank lines, comments and imports. */
export interface CodeFile {
  readonly file: string
  readonly lines: readonly CodeLine[]
}

interface CodeLine {
  readonly at: number // from 1
  readonly text: string
}

const IMPORT = /^import\b[^'"]*['"][^'"]*['"]$|^export \{[^}]*\} from '[^']*'$/gm
const COMMENT = /^\s*\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm

/** Replaces what does not count by as many empty lines. */
const blank = (text: string, what: RegExp): string => text.replace(what, found => found.replace(/[^\n]/g, ''))

export const readCode = (file: string, text: string): CodeFile => ({
  file,
  lines: blank(blank(text, IMPORT), COMMENT)
    .split('\n')
    .map((line, index) => ({ at: index + 1, text: line.trim() }))
    .filter(({ text: line }) => line !== ''),
})

const KEYWORD =
  /^(?:async|await|break|case|catch|class|const|continue|default|delete|else|export|extends|finally|for|function|if|in|instanceof|interface|let|new|null|of|return|static|switch|throw|true|false|try|type|typeof|undefined|void|while|yield|readonly|as|this)$/

/** A line without its names, strings and numbers. */
export const shapeOf = (line: string): string =>
  line
    .replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/g, 'x')
    .replace(/[\p{L}\p{N}_$]+/gu, word => (KEYWORD.test(word) ? word : 'x'))

interface RunOptions {
  readonly longest: number // lines that two places may share
  readonly shape?: (line: string) => string // what is compared; by default the line
  readonly fewestDistinct?: number // different lines in a run; below it is a table, whose rows look alike
}

/** The places that share more than `longest` lines: `a.ts:10 ~ b.ts:20`, where each run begins. */
export const repeatedRuns = (files: readonly CodeFile[], options: RunOptions): string[] => {
  const { longest, shape = line => line, fewestDistinct = 1 } = options
  const size = longest + 1
  const first = new Map<string, readonly [file: number, index: number]>()
  const found: string[] = []
  for (const [number, { file, lines }] of files.entries()) {
    const shapes = lines.map(({ text }) => shape(text))
    let reported = -1 // the line after the run that was reported last
    for (let index = 0; index + size <= shapes.length; index++) {
      const run = shapes.slice(index, index + size)
      if (new Set(run).size < fewestDistinct) continue
      const key = run.join('\n')
      const place = first.get(key)
      if (!place) first.set(key, [number, index])
      else if ((place[0] !== number || place[1] + size <= index) && index >= reported) {
        const other = files[place[0]]
        found.push(`${other?.file}:${other?.lines[place[1]]?.at} ~ ${file}:${lines[index]?.at}`)
        reported = index + size
      }
    }
  }
  return found
}
