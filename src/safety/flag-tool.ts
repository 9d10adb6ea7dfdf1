import type { ToolFlag } from '../protocol/pins.ts'
import type { Json } from '../wire/json/json.ts'
import { findHidden, visibleText } from './hidden-text.ts'

/** Texts that address the model about more than the tool itself; docs/tool-safety.md lists them. */
const INSTRUCTIONS: readonly RegExp[] = [
  /<\/?\s*(important|system|secret|hidden|instructions?|assistant|critical)\s*>/i,
  /\b(ignore|disregard|forget|override)\s+(all\s+|any\s+)?(of\s+)?(the\s+|your\s+|my\s+)?(previous|prior|above|earlier|other|system|existing)\s+(instructions?|prompts?|rules?|messages?)/i,
  /\b(do\s+not|don['’]t|never|must\s+not|should\s+not|without)\s+(ever\s+)?(tell(ing)?|inform(ing)?|mention(ing)?|reveal(ing)?|notify(ing)?|alert(ing)?)\s+(\w+\s+){0,4}?(to\s+)?(the\s+)?user/i,
  /\b(hide|conceal|keep)\s+(\w+\s+){0,4}?(from|secret\s+from)\s+(the\s+)?user/i,
  /\bsystem\s+prompt\b/i,
  /\byou\s+are\s+now\s+(a|an|in)\b/i,
  /\bbefore\s+(using|calling|invoking|running)\s+(any|every|each)\s+(other\s+)?tools?\b/i,
  /\b(send|forward|upload|include|append|pass|copy)\s+(\w+\s+){0,4}?(the\s+)?(entire\s+|whole\s+|full\s+)?(conversation|chat)(\s+history)?\s+(to|in|as|into)\b/i,
  /(~|\$HOME|\/home\/\w+|\/root)\/\.(ssh|aws|gnupg|kube|netrc|cursor)\b|\bid_(rsa|ed25519)\b|\/etc\/(passwd|shadow)\b/i,
]

const TEXT_MEMBERS: ReadonlySet<string> = new Set(['description', 'title', '$comment'])
const MOST_FLAGS = 20 // of one tool
const CONTEXT = 60 // characters around what was found

/** A text of a tool that models read, and where it stands. */
export interface ToolText {
  readonly at: string
  readonly text: string
}

/** All texts of a definition: of the tool, and of its schemas. Names of members are texts, too. */
export const toolTextsOf = (tool: Json): readonly ToolText[] => {
  const texts: ToolText[] = []
  const add = (at: string, value: Json | undefined): void => {
    const text = value?.asString()
    if (text !== undefined) texts.push({ at, text })
  }
  const walk = (at: string, value: Json): void => {
    for (const element of value.elements()) walk(at, element)
    for (const [name, member] of value.entries()) {
      if (findHidden(name).length > 0) texts.push({ at: `${at}.${visibleText(name)}`, text: name })
      if (member.kind === 'string') {
        if (TEXT_MEMBERS.has(name) || findHidden(member.asString() ?? '').length > 0) add(`${at}.${name}`, member)
      } else walk(`${at}.${name}`, member)
    }
  }
  for (const name of ['name', 'title', 'description']) add(name, tool.get(name))
  for (const name of ['inputSchema', 'outputSchema', 'annotations']) {
    const value = tool.get(name)
    if (value) walk(name, value)
  }
  return texts
}

/** What the rules for single tools find in one; the same text is reported once for each rule. */
export const flagTool = (tool: Json): readonly ToolFlag[] =>
  toolTextsOf(tool)
    .flatMap(({ at, text }) => [...hiddenFlags(at, text), ...instructionFlags(at, text)])
    .slice(0, MOST_FLAGS)

const hiddenFlags = (at: string, text: string): ToolFlag[] => {
  const hidden = findHidden(text)
  const [first] = hidden
  if (!first) return []
  const kinds = [...new Set(hidden.map(({ what }) => what))].join(', ')
  const around = [...text].slice(Math.max(0, first.at - CONTEXT / 2), first.at + CONTEXT / 2).join('')
  return [{ rule: 'hidden-text', at, detail: `${kinds} (${hidden.length}): ${oneLine(around)}` }]
}

const instructionFlags = (at: string, text: string): ToolFlag[] => {
  const found = INSTRUCTIONS.map(pattern => pattern.exec(text)).find(match => match !== null)
  if (!found) return []
  const around = text.slice(Math.max(0, found.index - CONTEXT), found.index + found[0].length + CONTEXT)
  return [{ rule: 'instructions', at, detail: oneLine(around) }]
}

/** A text on one line, with hidden characters shown. */
export const oneLine = (text: string): string => visibleText(text.replace(/\s+/g, ' ').trim())
