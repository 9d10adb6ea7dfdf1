/** What one speaker said in one go. */
export interface Turn {
  readonly kind: 'turn'
  readonly actor: string
  readonly text: string
}

// A name of up to four words, perhaps with a role or a time in brackets: `Ann (support): …`, `[10:02] bob: …`.
const SPEAKER =
  /^\s*(?:\[[^\]\n]{1,40}\]\s*)?([\p{L}\p{N}_@.'’-]{1,60}(?:[ \t][\p{L}\p{N}_@.'’-]{1,60}){0,3})(?:[ \t]*\([^)\n]{1,40}\))?:(?:[ \t]+|$)/u

const openingOf = (line: string): { actor: string; text: string } | undefined => {
  const match = SPEAKER.exec(line)
  return match?.[1] === undefined ? undefined : { actor: match[1], text: line.slice(match[0].length) }
}

/** The turns of a transcript in `actor: text` lines; lines without a speaker go on with the last. Nothing if nobody speaks. */
export const turnsOf = (content: string): Turn[] | undefined => {
  const turns: { actor: string; lines: string[] }[] = []
  for (const line of content.split('\n')) {
    const opening = openingOf(line)
    if (opening) turns.push({ actor: opening.actor, lines: [opening.text] })
    else if (turns.length > 0) turns[turns.length - 1]?.lines.push(line)
    else if (line.trim() !== '') return undefined
  }
  if (turns.length === 0) return undefined
  return turns.flatMap(({ actor, lines }) => {
    const text = lines.join('\n').trim()
    return text === '' ? [] : [{ kind: 'turn', actor, text }]
  })
}
