import { normaliseName } from './names.ts'
import { isOpener } from './openers.ts'
import { isStopWord } from './stop-words.ts'

/** Something a text names. */
export interface EntitySpan {
  readonly kind: 'name' | 'quoted' | 'code' | 'url' | 'handle'
  readonly text: string
  readonly start: number
}

const MOST_SPANS = 200
const MOST_CHARACTERS = 100_000 // of a text that is looked through
const LONGEST_NAME = 80

const LONGEST_SPAN = 200 // a longer URL or identifier is data, and nobody calls it by its name

const URL_SPAN = /\bhttps?:\/\/[^\s<>"'`)\]]*[^\s<>"'`)\].,;:!?]/giu
const HANDLE = /(?<![\p{L}\p{N}.@])@[\p{L}\p{N}][\p{L}\p{N}_.-]{0,38}[\p{L}\p{N}_]/gu
const TICKED = /`([^`\n]{1,80})`/gu
const CODE =
  /(?<![\p{L}\p{N}_./@-])(?:[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+(?:\(\))?|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?:\(\))?|[A-Za-z_][\w-]*(?:\/[\w.-]+)+|[\w-]+\.(?:ts|tsx|js|mjs|py|rs|go|java|rb|c|cpp|h|sh|sql|json|ya?ml|toml|md|html|css|txt|csv))(?![\p{L}\p{N}_])/gu
const QUOTED = /["“«]([^"“”«»\n]{2,80})["”»]/gu
const QUOTE = /["“«]/

/** What is found by signs of its own; where the hint is absent, nobody needs to look. */
const SIGNS: readonly { hint: RegExp; pattern: RegExp; kind: EntitySpan['kind'] }[] = [
  { hint: /:\/\//, pattern: URL_SPAN, kind: 'url' },
  { hint: /`/, pattern: TICKED, kind: 'code' },
  { hint: /@/, pattern: HANDLE, kind: 'handle' },
  { hint: /[_/]|[a-z0-9][A-Z]|\.[a-z]/, pattern: CODE, kind: 'code' },
]

const WORD = String.raw`(?:Dr|Mr|Mrs|Ms|Prof|St)\.(?=\s\p{Lu})|\p{Lu}[\p{L}\p{M}\p{N}&'’-]*|\p{Lu}\.(?=\s?\p{Lu})`
const NAME = new RegExp(
  String.raw`(?<![\p{L}\p{N}_])(?:${WORD})(?:[ \t](?:(?:of|the|de|da|del|van|von|der|la|le|du|and|for)[ \t]){0,2}(?:${WORD}|\p{N}+(?![\p{L}\p{N}%])))*`,
  'gu',
)
const CALENDAR =
  /^(?:mon|tues|wednes|thurs|fri|satur|sun)days?$|^(?:january|february|march|april|may|june|july|august|september|october|november|december|am|pm|ok|i)$/u
const JOINT = /[ \t](?:and|for)[ \t]/u
const TAIL = /['’]s$|['’]$/u
// What people do and things hardly: a capitalised first word before it is somebody.
const DOES =
  /^[ \t](?:(?:also|now|just|never|always|often|recently|still|then) )?(?:works?|worked|lives?|lived|likes?|liked|loves?|loved|hates?|hated|prefers?|preferred|wants?|wanted|leads|led|owns|owned|moved|joined|left|met|knows?|knew|says|said|told|asked|bought|sold|thinks|thought|needs|decided|agreed|reviews|reviewed|manages|managed|studied|studies|speaks|married|visited|wrote|writes|became)\b/u
const OPENS_SENTENCE = /(?:^|[.!?…:;\n"“”(\]*•–—-])[\s"“”'*_#>-]*$/u

/** Leaves out the capitalised words at the front that are there for the sentence's sake. */
const strip = (span: EntitySpan, isFirst: boolean): EntitySpan | undefined => {
  let { text, start } = span
  for (;;) {
    const first = /^[^ \t]+/.exec(text)?.[0] ?? ''
    const word = normaliseName(first).replaceAll(/['’].*$/gu, '')
    const idle = isStopWord(word) || (isFirst && isOpener(word)) || CALENDAR.test(word)
    if (!idle) break
    const rest = text.slice(first.length).trimStart()
    if (rest === '' || !/^\p{Lu}/u.test(rest)) return undefined
    start += text.length - rest.length
    text = rest
  }
  const bare = text.replace(TAIL, '')
  return bare.length < 2 || CALENDAR.test(bare.toLowerCase()) ? undefined : { ...span, text: bare, start }
}

/** "Anna and Bert" are two, "Bed and Breakfast" is not known to be one. */
const parts = (span: EntitySpan): EntitySpan[] => {
  const joint = JOINT.exec(span.text)
  if (!joint) return [span]
  const rest = joint.index + joint[0].length
  return [
    { ...span, text: span.text.slice(0, joint.index) },
    ...parts({ ...span, text: span.text.slice(rest), start: span.start + rest }),
  ]
}

const matches = (text: string, pattern: RegExp, kind: EntitySpan['kind']): EntitySpan[] =>
  [...text.matchAll(pattern)].map(match => ({ kind, text: match[1] ?? match[0], start: match.index }))

const blank = (text: string, pattern: RegExp): string => text.replace(pattern, found => ' '.repeat(found.length))

/** A capitalised first word alone may be any word; it is a name if the text or the caller knows it as one. */
const namesIn = (text: string, isKnown: (norm: string) => boolean): EntitySpan[] => {
  const certain = new Set<string>()
  const doubtful: EntitySpan[] = []
  const spans: EntitySpan[] = []
  for (const match of text.matchAll(NAME)) {
    const isFirst = OPENS_SENTENCE.test(text.slice(Math.max(0, match.index - 12), match.index))
    const found = parts({ kind: 'name', text: match[0], start: match.index })
    for (const part of found) {
      const opens = isFirst && part.start === match.index
      const span = strip(part, opens)
      if (!span || span.text.length > LONGEST_NAME) continue
      const isSure =
        !opens ||
        found.length > 1 ||
        span.start !== part.start ||
        /[ \d-]|\p{Lu}.*\p{Lu}/u.test(span.text) ||
        DOES.test(text.slice(match.index + match[0].length, match.index + match[0].length + 30)) ||
        TAIL.test(match[0])
      if (isSure) certain.add(normaliseName(span.text))
      ;(isSure ? spans : doubtful).push(span)
    }
  }
  const kept = doubtful.filter(({ text: name }) => certain.has(normaliseName(name)) || isKnown(normaliseName(name)))
  return [...spans, ...kept]
}

/** What a text names: capitalised and quoted spans, code, URLs and handles, each once, in order. */
export const entitiesIn = (text: string, isKnown: (norm: string) => boolean = () => false): EntitySpan[] => {
  let rest = text.slice(0, MOST_CHARACTERS)
  const found: EntitySpan[] = []
  for (const { hint, pattern, kind } of SIGNS) {
    if (!hint.test(rest)) continue
    found.push(...matches(rest, pattern, kind))
    rest = blank(rest, pattern)
  }
  const quoted = (QUOTE.test(rest) ? matches(rest, QUOTED, 'quoted') : []).filter(
    // What holds a span that was taken out already would be quoted with a gap.
    ({ text: title, start }) => /^\p{Lu}/u.test(title) && !/[.!?]$/.test(title) && text.startsWith(title, start + 1),
  )
  found.push(...quoted.filter(({ text: title }) => title.split(/\s+/u).length <= 8))
  found.push(...namesIn(rest, isKnown))
  const once = new Map<string, EntitySpan>()
  for (const span of found.toSorted((a, b) => a.start - b.start)) {
    const norm = normaliseName(span.text)
    if (norm !== '' && norm.length <= LONGEST_SPAN && !once.has(norm)) once.set(norm, span)
  }
  return [...once.values()].slice(0, MOST_SPANS)
}
