// Which names say that a value is a secret, in messages and in a configuration. Pure.

/** Words that make a name one of a secret, alone or as a pair of neighbours. */
const SECRET_WORDS: ReadonlySet<string> = new Set([
  ...['password', 'passwords', 'passwd', 'passphrase', 'passcode', 'pwd', 'pass', 'otp', 'totp', 'pin', 'cvv', 'cvc'],
  ...['secret', 'secrets', 'authorization', 'authentication', 'bearer', 'jwt', 'cookie', 'cookies', 'csrf', 'xsrf'],
  ...[
    'credential',
    'credentials',
    'apikey',
    'apikeys',
    'token',
    'tokens',
    'accesskey',
    'privatekey',
    'signature',
    'dsn',
  ],
])
const SECRET_PAIRS: ReadonlySet<string> = new Set([
  ...['api key', 'api keys', 'private key', 'access key', 'secret key', 'signing key', 'encryption key', 'master key'],
  ...[
    'auth key',
    'account key',
    'shared key',
    'ssh key',
    'client key',
    'auth code',
    'authorization code',
    'code verifier',
    'connection string',
  ],
])
/** With these before it, a token is no secret: it marks progress or a place in a list. */
const HARMLESS_TOKENS: ReadonlySet<string> = new Set([
  'progress',
  'page',
  'next',
  'previous',
  'continuation',
  'sync',
  'max',
])

/** Whether the value of a member is shown: never, in part, or as it is. A `count` is shown if it is a number. */
export type NameKind = 'secret' | 'count' | 'shortened' | 'plain'

/** Ids that are credentials where callers need no token; their start is enough to tell them apart. */
const SHORTENED: ReadonlySet<string> = new Set([
  'request state',
  'session id',
  'mcp session id',
  'last event id',
  'sid',
])

const LONGEST_NAME = 200 // characters; no longer name is one of a secret
const MOST_KNOWN = 2000

/** Makes the function that classifies names; `extra` are further names of secrets, in any spelling. */
export const createNameClassifier = (extra: readonly string[]): ((name: string) => NameKind) => {
  const further = new Set(extra.map(name => wordsOf(name).join(' ')))
  const known = new Map<string, NameKind>()
  return name => {
    if (name.length > LONGEST_NAME) return 'plain'
    const before = known.get(name)
    if (before !== undefined) return before
    const words = wordsOf(name)
    const kind = further.has(words.join(' ')) ? 'secret' : kindOf(words)
    if (known.size >= MOST_KNOWN) known.clear()
    known.set(name, kind)
    return kind
  }
}

/** Parts of names of settings; `key` or `pat` alone would be too common a name in messages. */
const SECRET_SETTING =
  /secret|passw|passphrase|token|api[-_]?key|access[-_]?key|private[-_]?key|(^|[-_])key$|credential|(^|[-_])auth|cookie|signature|bearer|jwt|(^|[-_])pat$|dsn$|connection[-_]?string/i
/** True for the name of a variable, header, flag or parameter that usually holds a secret. */
export const isSecretSetting = (name: string): boolean =>
  SECRET_SETTING.test(name) || kindOf(wordsOf(name)) === 'secret'

const kindOf = (words: readonly string[]): NameKind => {
  if (SHORTENED.has(words.join(' '))) return 'shortened'
  let kind: NameKind = 'plain'
  for (const [at, word] of words.entries()) {
    const previous = words[at - 1] ?? ''
    if (SECRET_PAIRS.has(`${previous} ${word}`)) return 'secret'
    if (!SECRET_WORDS.has(word)) continue
    if (word === 'token' || word === 'tokens') {
      if (HARMLESS_TOKENS.has(previous)) continue
      if (word === 'tokens' || at < words.length - 1) {
        kind = 'count' // `tokens`, `tokenCount`: often a number
        continue
      }
    }
    return 'secret'
  }
  return kind
}

/** `x-api-key`, `apiKey`, `API_KEY` and `api.key` have the same words. */
const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(word => word !== '')
