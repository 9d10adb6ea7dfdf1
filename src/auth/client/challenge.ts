/** What a server says in the Bearer challenge of a WWW-Authenticate header (RFC 6750, RFC 9728). */
export interface BearerChallenge {
  readonly resourceMetadata?: string | undefined
  readonly scopes: readonly string[]
  readonly error?: string | undefined
}

interface Challenge {
  readonly scheme: string // in lower case
  readonly params: ReadonlyMap<string, string> // names in lower case
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAM = new RegExp(`^(${TOKEN})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN}))`)
const SCHEME = new RegExp(`^(${TOKEN})(?=[ \\t]|,|$)`)
const TOKEN68 = /^[ \t]+[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/
const BLANK = /^[ \t,]+/

/** The first Bearer challenge; undefined if there is none. Reads what it can of a malformed header. */
export const readBearerChallenge = (header: string | readonly string[] | undefined): BearerChallenge | undefined => {
  const texts = typeof header === 'string' ? [header] : (header ?? [])
  const found = texts.flatMap(readChallenges).find(({ scheme }) => scheme === 'bearer')
  if (!found) return undefined
  return {
    resourceMetadata: found.params.get('resource_metadata'),
    scopes: splitScopes(found.params.get('scope')),
    error: found.params.get('error'),
  }
}

/** The scopes of a space-separated list, each once. */
export const splitScopes = (text: string | undefined): readonly string[] => [
  ...new Set((text ?? '').split(/\s+/).filter(scope => scope !== '')),
]

/** A header may have several challenges, separated like their parameters by commas. */
const readChallenges = (text: string): Challenge[] => {
  const challenges: { scheme: string; params: Map<string, string> }[] = []
  let rest = text
  const take = (length: number): void => {
    rest = rest.slice(length)
  }
  while (rest !== '') {
    take(BLANK.exec(rest)?.[0].length ?? 0)
    const param = PARAM.exec(rest)
    const scheme = param ? undefined : SCHEME.exec(rest)?.[1]
    const latest = challenges.at(-1)
    if (param && latest) {
      const [, name = '', quoted, plain = ''] = param
      const key = name.toLowerCase()
      if (!latest.params.has(key)) latest.params.set(key, quoted?.replace(/\\(.)/g, '$1') ?? plain)
    } else if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), params: new Map() })
    if (param) take(param[0].length)
    else if (scheme !== undefined) take(scheme.length + tokenLength(rest.slice(scheme.length)))
    else take(Math.max(1, rest.search(/[,\s]|$/))) // not readable: go on after it
  }
  return challenges
}

/** The length of a token after a scheme, as in `Negotiate abc==`. A parameter is none. */
const tokenLength = (text: string): number => TOKEN68.exec(text)?.[0].length ?? 0
