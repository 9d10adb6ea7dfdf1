// Sizes of tools and of lists of them. The console imports this file, so it is free of Node.js.

/** How large definitions of tools are. */
export interface ToolSize {
  readonly bytes: number // as they are listed
  readonly tokens: number // estimated
}

/** One tool and its size. */
export interface SizedTool extends ToolSize {
  readonly name: string
}

const NO_SIZE: ToolSize = { bytes: 0, tokens: 0 }

/** A list of tools above this size takes a tenth of a context of 200,000 tokens: it is reported. */
const LARGE_LIST_TOKENS = 20_000

const add = (sum: ToolSize, size: ToolSize): ToolSize => ({
  bytes: sum.bytes + size.bytes,
  tokens: sum.tokens + size.tokens,
})

/** The size of all these together. */
export const sumOfSizes = (sizes: Iterable<ToolSize>): ToolSize => {
  let sum = NO_SIZE
  for (const size of sizes) sum = add(sum, size)
  return sum
}

/** What the tools of a workspace cost its clients. */
export interface ToolListSize {
  readonly tools: number // that callers can call
  readonly all: ToolSize // of all their definitions
  readonly listed: ToolSize // of what `tools/list` answers
  readonly listedTools: number
  readonly budget?: number | undefined // tokens; undefined: none
  readonly trimmed?: ToolSize | undefined // what trimming has saved of all; undefined: it is off
  readonly unknown: readonly string[] // servers whose tools are not known
}

/** Whether a list is so large that its owner should do something about it. */
export const isLargeList = ({ listed }: Pick<ToolListSize, 'listed'>): boolean => listed.tokens > LARGE_LIST_TOKENS

/** What the owner of a large list is told. */
export const largeListText = (workspace: string, { listed, listedTools }: ToolListSize): string =>
  `warning: the list of ${workspace} has about ${tokenText(listed.tokens)} tokens in ${listedTools} tools, which every client of it reads; set a "budget" for this workspace`

/** What trimming saves in a list; undefined if it is off. */
export const trimmedText = (workspace: string, { trimmed }: ToolListSize): string | undefined =>
  trimmed && `trimming saves about ${tokenText(trimmed.tokens)} tokens in the definitions of ${workspace}`

/** `195k`, `1.2k`, `640`: a number of tokens for people. */
export const tokenText = (tokens: number): string => {
  if (tokens < 1000) return `${tokens}`
  return `${tokens < 10_000 ? (tokens / 1000).toFixed(1) : Math.round(tokens / 1000)}k`
}
