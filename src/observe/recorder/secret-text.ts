// Credentials inside texts: known formats of tokens, headers, URLs and assignments. Pure.

/** What stands in place of a secret. */
export const REDACTED = '[redacted]'

/** Formats of tokens that are recognized wherever they occur. Every repetition has a bound: the texts are of strangers. */
const FORMATS = [
  'dr[gork]_[\\w-]{12,}', // of this gateway
  'sk-[\\w-]{16,}', // OpenAI, Anthropic and others
  '[srp]k_(?:live|test)_\\w{10,}', // Stripe
  'whsec_[\\w+/=]{16,}',
  'gh[pousr]_\\w{20,}',
  'github_pat_\\w{20,}',
  'glpat-[\\w-]{16,}',
  'xox[abeoprs]-[\\w-]{10,}', // Slack
  'xapp-[\\w-]{10,}',
  '(?:AKIA|ASIA)[0-9A-Z]{16}', // AWS
  'AIza[\\w-]{30,}', // Google
  'ya29\\.[\\w-]{16,}',
  'npm_[A-Za-z0-9]{30,}',
  'pypi-[\\w-]{16,}',
  'hf_[A-Za-z0-9]{20,}', // Hugging Face
  'SG\\.[\\w-]{16,64}\\.[\\w-]{16,}', // SendGrid
  'dop_v1_[a-f0-9]{32,}', // DigitalOcean
  'lin_(?:api|oauth)_\\w{16,}',
  'shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}', // Shopify
  'ntn_\\w{20,}', // Notion
  'secret_[A-Za-z0-9]{32,}',
  'eyJ[\\w-]{8,2000}\\.[\\w-]{4,4000}(?:\\.[\\w-]{0,2000})?', // a JSON Web Token
]
const TOKENS = new RegExp(`(?<![A-Za-z0-9])(?:${FORMATS.join('|')})`, 'g')
const HOOKS = /(https:\/\/(?:hooks\.slack\.com\/services|discord(?:app)?\.com\/api\/webhooks)\/)[\w/-]{8,}/g
const LOGINS = /(\/oauth\/login\/)[\w-]{22,}/g // links of this gateway
const KEYS = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g
const SCHEMES = /\b(bearer|basic|digest|negotiate)(\s{1,4})(?=[\w.~+/=:,"-]{8})[\w.~+/=-]{6,}/gi
const USER_INFO = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@"'\\<>]{1,512}@/gi
const SECRET_WORD =
  '(?:pass(?:word|wd|phrase|code)|pwd|secret|token|api[_-]?key|authorization|cookie|credential|private[_-]?key|access[_-]?key|signature)'
const PARAMETERS = new RegExp(`([?&;#][\\w.-]{0,40}${SECRET_WORD}[\\w-]{0,20}=)[^&\\s"'\\\\#<>]+`, 'gi')
const SHORT_PARAMETERS = /([?&;#](?:sig|key|auth|code|state)=)[^&\s"'\\#<>]{6,}/gi
/** `name = value`, `"name": "value"`, also with the escapes of JSON within JSON. */
const ASSIGNMENTS = new RegExp(
  `(${SECRET_WORD}[\\w-]{0,20}["'\\\\]{0,4}\\s{0,4}[:=]\\s{0,4}["'\\\\]{0,4})(?!\\[redacted\\])([^\\s"'\\\\,;&<>{}()\\[\\]]{6,})`,
  'gi',
)
const PLACES = /(progress|page|next|continuation)_?$/i // before "token"
const MAYBE =
  /dr[gork]_|sk-|k_live|k_test|whsec|gh[pousr]_|github_pat|glpat|xox|xapp|AKIA|ASIA|AIza|ya29|npm_|pypi-|hf_|SG\.|dop_v1|lin_|shp|ntn_|secret|eyJ|hooks\.|webhooks|PRIVATE KEY|bearer|basic|digest|negotiate|:\/\/|pass|pwd|token|key|auth|cookie|credential|signature|sig=|code=|state=|oauth\/login/i

/** The text without credentials; the same string if it has none. */
export const redactText = (text: string): string => {
  if (!MAYBE.test(text)) return text // most texts
  return text
    .replace(KEYS, REDACTED)
    .replace(TOKENS, REDACTED)
    .replace(HOOKS, `$1${REDACTED}`)
    .replace(LOGINS, `$1${REDACTED}`)
    .replace(SCHEMES, `$1$2${REDACTED}`)
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(PARAMETERS, `$1${REDACTED}`)
    .replace(SHORT_PARAMETERS, `$1${REDACTED}`)
    .replace(ASSIGNMENTS, (whole: string, name: string, _value: string, at: number) =>
      /^token/i.test(name) && PLACES.test(text.slice(Math.max(0, at - 16), at)) ? whole : `${name}${REDACTED}`,
    )
}
