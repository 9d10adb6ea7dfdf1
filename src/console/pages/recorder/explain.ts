import { isModern, isRevision, MODERN } from '../../../protocol/revisions.ts'
import type { MessageFlow, MessageRole } from './align.ts'
import type { JsonChange } from './diff.ts'
import type { JsonNode, JsonPath } from './json-node.ts'

/** Where the reason for a change is written down. */
export interface RuleReference {
  readonly label: string
  readonly href?: string | undefined // undefined: a file that comes with the program
}

/** A section of the specification. */
export const specReference = (section: string, label: string): RuleReference => ({
  label: `MCP ${MODERN}, ${label}`,
  href: `https://modelcontextprotocol.io/specification/${MODERN}/${section}`,
})

export const docsReference = (file: string): RuleReference => ({ label: `docs/${file}` })

/** One end of a connection of the gateway. */
export interface ExplainedEnd {
  readonly role: MessageRole
  readonly revision: string | undefined
  readonly dialect: string | undefined
}

/** A pair of messages, for the rules. */
export interface ExplainContext {
  readonly flow: MessageFlow
  readonly method: string
  readonly server: string | undefined
  readonly from: ExplainedEnd // sent the message
  readonly to: ExplainedEnd // gets it
  readonly before: JsonNode | undefined
  readonly after: JsonNode | undefined
}

type RuleEra = 'modern' | 'legacy'

/** Says why the gateway makes a change. Columns that are left out allow everything. */
export interface ExplainRule {
  readonly path: JsonPath // '*' stands for one step, '**' at the end for any number
  readonly kinds?: readonly JsonChange['kind'][]
  readonly flow?: MessageFlow
  readonly from?: RuleEra // of the end that sent the message
  readonly to?: RuleEra
  readonly roles?: readonly [from: MessageRole, to: MessageRole]
  readonly methods?: readonly string[]
  readonly when?: (change: JsonChange, context: ExplainContext) => boolean
  readonly text: string | ((context: ExplainContext, change: JsonChange) => string)
  readonly reference?: RuleReference
}

export interface Explanation {
  readonly text: string
  readonly reference?: RuleReference | undefined
}

/** For a change that no rule knows: says nothing that may be wrong. */
export const UNEXPLAINED: Explanation = { text: 'Changed by the gateway.' }

export const eraOf = (revision: string | undefined): RuleEra | undefined => {
  if (!isRevision(revision)) return undefined
  return isModern(revision) ? 'modern' : 'legacy'
}

/** The revision of an end, for a sentence. */
export const revisionText = ({ revision }: ExplainedEnd): string => revision ?? 'an unknown revision'

/** The explanation of a change by the first rule that matches. */
export const explainChange = (
  change: JsonChange,
  context: ExplainContext,
  rules: readonly ExplainRule[],
): Explanation => {
  const rule = rules.find(each => isMatch(each, change, context))
  if (!rule) return UNEXPLAINED
  const text = typeof rule.text === 'string' ? rule.text : rule.text(context, change)
  return { text, reference: rule.reference }
}

const isMatch = (rule: ExplainRule, change: JsonChange, context: ExplainContext): boolean => {
  const { kinds, flow, from, to, roles, methods, when } = rule
  return (
    (matchesPath(rule.path, change.path) || (change.to !== undefined && matchesPath(rule.path, change.to))) &&
    (kinds?.includes(change.kind) ?? true) &&
    (flow === undefined || flow === context.flow) &&
    (from === undefined || from === eraOf(context.from.revision)) &&
    (to === undefined || to === eraOf(context.to.revision)) &&
    (roles === undefined || (roles[0] === context.from.role && roles[1] === context.to.role)) &&
    (methods?.includes(context.method) ?? true) &&
    (when?.(change, context) ?? true)
  )
}

const matchesPath = (pattern: JsonPath, path: JsonPath): boolean => {
  const isOpen = pattern.at(-1) === '**'
  const steps = isOpen ? pattern.slice(0, -1) : pattern
  if (isOpen ? path.length < steps.length : path.length !== steps.length) return false
  return steps.every((step, at) => step === '*' || step === path[at])
}
