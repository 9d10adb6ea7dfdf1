import { timeIn } from './message.ts'
import type { Said } from './sessions.ts'
import type { TextLine } from './text-stream.ts'

// `Ann: …`, `[2025-03-01 10:02] Ann Lee: …`, `2025-03-01T10:02:00Z Ann: …`
const OPENING =
  /^\s*(?:\[?(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?)\]?\s+|\[[^\]\n]{1,40}\]\s*)?([\p{L}\p{N}_@.'’-]+(?:[ \t][\p{L}\p{N}_@.'’-]+){0,3})(?:[ \t]*\([^)\n]{1,40}\))?:[ \t]+(?=\S)/u

const LOOKED_AT = 60
const FEWEST = 0.6

/** True if most of the first lines begin with who speaks, and somebody speaks twice. */
export const hasSpeakers = (head: string): boolean => {
  const lines = head.split('\n', LOOKED_AT).filter(line => line.trim() !== '')
  const speakers = lines.flatMap(line => OPENING.exec(line)?.[2] ?? [])
  return (
    lines.length > 1 &&
    speakers.length >= lines.length * FEWEST &&
    new Set(speakers).size <= Math.max(2, lines.length / 2)
  )
}

/** What is said in a transcript of `actor: text` lines; a line without a speaker goes on with the last. */
export const saidIn = async function* (lines: AsyncIterable<TextLine>): AsyncGenerator<Said> {
  let said:
    | { readonly where: string; readonly actor: string; readonly at: number | undefined; text: string }
    | undefined
  for await (const { number, text } of lines) {
    const [opening, time, actor] = OPENING.exec(text) ?? []
    if (opening === undefined || actor === undefined) {
      if (said) said.text += `\n${text}`
      else if (text.trim() !== '') said = { where: `line ${number}`, actor: 'somebody', at: undefined, text }
      continue
    }
    if (said) yield { ...said, text: said.text.trim() }
    said = { where: `line ${number}`, actor, at: timeIn(time), text: text.slice(opening.length) }
  }
  if (said) yield { ...said, text: said.text.trim() }
}
