const TAIL_BYTES = 4096
const TAIL_LINES = 5
const TAIL_CHARACTERS = 600

/** The last bytes a process wrote to stderr; what is older is forgotten. */
export class StderrRing {
  total = 0
  readonly #size: number
  #ring: Buffer | undefined

  constructor(size: number) {
    this.#size = size
  }

  push(chunk: Buffer): void {
    this.#ring ??= Buffer.allocUnsafeSlow(this.#size)
    const kept = chunk.length > this.#size ? chunk.subarray(-this.#size) : chunk
    const from = (this.total + chunk.length - kept.length) % this.#size
    const fitting = kept.copy(this.#ring, from)
    kept.copy(this.#ring, 0, fitting)
    this.total += chunk.length
  }

  /** Everything that is still there. */
  text(): string {
    if (!this.#ring) return ''
    if (this.total <= this.#size) return this.#ring.toString('utf8', 0, this.total)
    const oldest = this.total % this.#size
    return Buffer.concat([this.#ring.subarray(oldest), this.#ring.subarray(0, oldest)]).toString('utf8')
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours and cursor movements
const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f]/g

/** The text without colours and cursor movements. */
export const withoutEscapes = (text: string): string => text.replace(ESCAPES, '')

/** The text with stars in place of the secrets; the longest first, for one may begin with another. */
export const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  [...secrets].sort((a, b) => b.length - a.length).reduce((told, secret) => told.replaceAll(secret, '***'), text)

/** The last few lines as one, without colours and without the values that are configured as secrets. */
export const tailOf = (text: string, secrets: readonly string[]): string => {
  const lines = withoutSecrets(withoutEscapes(text), secrets)
    .slice(-TAIL_BYTES) // afterwards: half a secret would not be recognised
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  return lines.slice(-TAIL_LINES).join(' | ').slice(-TAIL_CHARACTERS)
}
