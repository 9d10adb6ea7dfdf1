/** A command line of an example. */
interface ShellLine {
  readonly args: readonly string[]
  readonly input: string // of stdin
}

/** Reads a line of a shell as far as the examples need it: quotes, a comment, `echo … |` before, `| …` and `> …` after. */
export const readShell = (line: string): ShellLine => {
  const [, text = '', rest = line] = /^echo '([^']*)' \| (.*)$/.exec(line) ?? []
  const words: string[] = []
  for (const [word] of rest.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)) {
    if (['|', '>', '#'].includes(word)) break
    words.push(word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''))
  }
  return { args: words.slice(1), input: text }
}
