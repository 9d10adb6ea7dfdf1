import { adaptEntry } from './foreign-keys.ts'
import { isRawObject } from './server-entries.ts'

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]', '0.0.0.0'])
const PROGRAM = /(^|[\\/])dragoman(\.(cmd|exe|ps1))?$/i
const SCRIPT = /(^|[\\/])(dist[\\/]main\.js|dragoman(@[\w.^~-]+)?)$/i

/**
 * True for an entry that connects a client to this gateway: `dragoman stdio`, or an address on the port of the gateway.
 * Other clients keep it in the file that the gateway reads; served by the gateway, every call would run in a circle.
 */
export const isGateway = (raw: unknown, port?: number): boolean => {
  const { entry } = adaptEntry(raw)
  if (!isRawObject(entry)) return false
  const { command, args, url, httpUrl } = entry
  if (typeof command === 'string') return runsStdio([command, ...(Array.isArray(args) ? args.map(String) : [])])
  const address = URL.parse(String(httpUrl ?? url))
  return address !== null && port !== undefined && LOOPBACK.has(address.hostname) && Number(address.port) === port
}

/** `dragoman stdio`, also by npx or node. */
const runsStdio = (words: readonly string[]): boolean => {
  const at = words.indexOf('stdio')
  const program = words[at - 1] ?? ''
  return at > 0 && (PROGRAM.test(program) || SCRIPT.test(program))
}
