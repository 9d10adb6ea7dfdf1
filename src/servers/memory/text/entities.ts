import { isStopWord } from '../../../text/words.ts'
import { normaliseName } from './names.ts'

/** A name in a text, and where it starts. */
export interface EntitySpan {
  readonly kind: 'name' | 'quoted' | 'code' | 'url' | 'handle'
  readonly text: string
  readonly start: number
}

const MOST_SPANS = 200
const MOST_CHARACTERS = 100_000 // of a text; the rest is not searched for names
const LONGEST_NAME = 80
const LONGEST_SPAN = 200 // a longer URL or identifier is data rather than a name

const URL_SPAN = /\bhttps?:\/\/[^\s<>"'`)\]]*[^\s<>"'`)\].,;:!?]/giu
const HANDLE = /(?<![\p{L}\p{N}.@])@[\p{L}\p{N}][\p{L}\p{N}_.-]{0,38}[\p{L}\p{N}_]/gu
const TICKED = /`([^`\n]{1,80})`/gu
const CODE =
  /(?<![\p{L}\p{N}_./@-])(?:[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+(?:\(\))?|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?:\(\))?|[A-Za-z_][\w-]*(?:\/[\w.-]+)+|[\w-]+\.(?:ts|tsx|js|mjs|py|rs|go|java|rb|c|cpp|h|sh|sql|json|ya?ml|toml|md|html|css|txt|csv))(?![\p{L}\p{N}_])/gu
const QUOTED = /["“«]([^"“”«»\n]{2,80})["”»]/gu
const QUOTE = /["“«]/

/** Names with a syntax of their own; the cheap `hint` decides whether the pattern is run. */
const SYNTAXES: readonly { hint: RegExp; pattern: RegExp; kind: EntitySpan['kind'] }[] = [
  { hint: /:\/\//, pattern: URL_SPAN, kind: 'url' },
  { hint: /`/, pattern: TICKED, kind: 'code' },
  { hint: /@/, pattern: HANDLE, kind: 'handle' },
  { hint: /[_/]|[a-z0-9][A-Z]|\.[a-z]/, pattern: CODE, kind: 'code' },
]

const WORD = String.raw`(?:Dr|Mr|Mrs|Ms|Prof|St)\.(?=\s\p{Lu})|\p{Lu}[\p{L}\p{M}\p{N}&'\u2019-]*|\p{Lu}\.(?=\s?\p{Lu})`
const NAME = new RegExp(
  String.raw`(?<![\p{L}\p{N}_])(?:${WORD})(?:[ \t](?:(?:of|the|de|da|del|van|von|der|la|le|du|and|for)[ \t]){0,2}(?:${WORD}|\p{N}+(?![\p{L}\p{N}%])))*`,
  'gu',
)
const CALENDAR =
  /^(?:mon|tues|wednes|thurs|fri|satur|sun)days?$|^(?:january|february|march|april|may|june|july|august|september|october|november|december|am|pm|ok|i)$/u
const JOINT = /[ \t](?:and|for)[ \t]/u
const TAIL = /['’]s$|['’]$/u
// Verbs whose subject is usually a person: a capitalised first word before one of them is a name.
const PERSON_VERB =
  /^[ \t](?:(?:also|now|just|never|always|often|recently|still|then) )?(?:works?|worked|lives?|lived|likes?|liked|loves?|loved|hates?|hated|prefers?|preferred|wants?|wanted|leads|led|owns|owned|moved|joined|left|met|knows?|knew|says|said|told|asked|bought|sold|thinks|thought|needs|decided|agreed|reviews|reviewed|manages|managed|studied|studies|speaks|married|visited|wrote|writes|became)\b/u
const OPENS_SENTENCE = /(?:^|[.!?…:;\n"“”(\]*•–—-])[\s"“”'*_#>-]*$/u

// Common first words of a sentence: capitalised without being names.
const OPENER_LIST = `
absolutely actually ah aha ahh alas already alright although always amazing amen and anyway anyways apparently as awesome aw aww
basically because before besides best bet beyond big bless bravo brilliant but by bye call can check cheers clearly come
congrats congratulations cool could dang dear definitely despite did do does done dude each eh either enjoy especially
even eventually every everyone everything exactly excellent fair fantastic feel finally fine first follow for fortunately
from funny generally gee glad go god goodbye good goodness gosh got gotcha great guess guys had haha happy hard have he
hello hence here hey hi hmm honestly hooray hope hopefully how however huh hurray i if impressive in indeed instead
interesting is it its just keep kind kinda lately later let lets like literally lol long look looking looks lots love
lovely luckily make man many maybe me meanwhile might mine more moreover most my nah naturally need never nevertheless
next nice nope no not nothing note now obviously oh ok okay omg on once one only oops or originally other otherwise ouch
our out overall perfect perhaps personally phew plus please pretty previously probably quick quite rarely rather really
remember right sad sadly same see seriously she should similarly since sincerely so some someone something sometimes
soon sorry sounds speaking still stay such super sure surely surprisingly sweet take talk tell thank thankfully thanks
that thats the their then there therefore these they this those though thus to today together tomorrow tonight too totally true truly
try two unbelievable under unfortunately unless until up us use usually very wait was watch way we well were what whatever
when where which while who whoa why will wish with without wonderful wow wont would yay yeah yep yes yesterday yet you your youre yup
add all after also any are at ask both avoid build change create delete during ensure fix given import install merge move
new open read refactor remove rename replace revert run set start stop test todo update upgrade warning write
`
const OPENERS: ReadonlySet<string> = new Set(OPENER_LIST.trim().split(/\s+/))

/** Removes leading words that are capitalised only because they open the sentence; undefined if nothing is left. */
const stripOpeners = (span: EntitySpan, isFirst: boolean): EntitySpan | undefined => {
  let { text, start } = span
  for (;;) {
    const first = /^[^ \t]+/.exec(text)?.[0] ?? ''
    const word = normaliseName(first).replaceAll(/['’].*$/gu, '')
    const isFiller = isStopWord(word) || (isFirst && OPENERS.has(word)) || CALENDAR.test(word)
    if (!isFiller) break
    const rest = text.slice(first.length).trimStart()
    if (rest === '' || !/^\p{Lu}/u.test(rest)) return undefined
    start += text.length - rest.length
    text = rest
  }
  const bare = text.replace(TAIL, '')
  return bare.length < 2 || CALENDAR.test(bare.toLowerCase()) ? undefined : { ...span, text: bare, start }
}

/** Splits at "and" and "for": "Anna and Bert" are two names; that "Bed and Breakfast" is one cannot be known. */
const splitJoint = (span: EntitySpan): EntitySpan[] => {
  const joint = JOINT.exec(span.text)
  if (!joint) return [span]
  const rest = joint.index + joint[0].length
  return [
    { ...span, text: span.text.slice(0, joint.index) },
    ...splitJoint({ ...span, text: span.text.slice(rest), start: span.start + rest }),
  ]
}

const matches = (text: string, pattern: RegExp, kind: EntitySpan['kind']): EntitySpan[] =>
  [...text.matchAll(pattern)].map(match => ({ kind, text: match[1] ?? match[0], start: match.index }))

const blank = (text: string, pattern: RegExp): string => text.replace(pattern, found => ' '.repeat(found.length))

/** Capitalised names. A single first word of a sentence counts only if the text or the caller knows it as a name. */
const namesIn = (text: string, isKnown: (norm: string) => boolean): EntitySpan[] => {
  const certain = new Set<string>()
  const uncertain: EntitySpan[] = []
  const spans: EntitySpan[] = []
  for (const match of text.matchAll(NAME)) {
    const isFirst = OPENS_SENTENCE.test(text.slice(Math.max(0, match.index - 12), match.index))
    const found = splitJoint({ kind: 'name', text: match[0], start: match.index })
    for (const part of found) {
      const opens = isFirst && part.start === match.index
      const span = stripOpeners(part, opens)
      if (!span || span.text.length > LONGEST_NAME) continue
      const isSure =
        !opens ||
        found.length > 1 ||
        span.start !== part.start ||
        /[ \d-]|\p{Lu}.*\p{Lu}/u.test(span.text) ||
        PERSON_VERB.test(text.slice(match.index + match[0].length, match.index + match[0].length + 30)) ||
        TAIL.test(match[0])
      if (isSure) certain.add(normaliseName(span.text))
      ;(isSure ? spans : uncertain).push(span)
    }
  }
  const kept = uncertain.filter(({ text: name }) => certain.has(normaliseName(name)) || isKnown(normaliseName(name)))
  return [...spans, ...kept]
}

/** The names in a text: capitalised and quoted spans, code, URLs and handles, each once, in order. */
export const entitiesIn = (text: string, isKnown: (norm: string) => boolean = () => false): EntitySpan[] => {
  let rest = text.slice(0, MOST_CHARACTERS)
  const found: EntitySpan[] = []
  for (const { hint, pattern, kind } of SYNTAXES) {
    if (!hint.test(rest)) continue
    found.push(...matches(rest, pattern, kind))
    rest = blank(rest, pattern)
  }
  const quoted = (QUOTE.test(rest) ? matches(rest, QUOTED, 'quoted') : []).filter(
    // A quotation around a span that was blanked out above would have a gap.
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
