import { isUtf8 } from 'node:buffer'
import { ANSWER_MS, Fault, type Message } from './http.ts'

const DEEPEST = '['.repeat(500) // the gateway reads 512 levels

/** The id under which an answer must come to the message in that text; undefined if none has to. */
export const expectedId = (bytes: Buffer): string | number | undefined => {
  const text = bytes.toString()
  if (!isUtf8(bytes) || text.includes(DEEPEST)) return undefined
  try {
    const { jsonrpc, id, method, params, result, error } = JSON.parse(text) as Record<string, unknown>
    const isObject = params === undefined || params === null || (typeof params === 'object' && !Array.isArray(params))
    const isRequest = jsonrpc === '2.0' && typeof method === 'string' && isObject
    if (!isRequest || result !== undefined || error !== undefined) return undefined
    return typeof id === 'string' || Number.isSafeInteger(id) ? (id as string | number) : undefined
  } catch {
    return undefined
  }
}

/** Which requests of one channel or pipe have been answered, and how often. */
export class Answers {
  readonly #sent = new Map<unknown, { count: number; readonly text: string }>()
  readonly #answered = new Map<unknown, number>()
  #look = (): void => {}

  /** An answer must come; it may have come already. */
  expect(bytes: Buffer): void {
    const id = expectedId(bytes)
    if (id === undefined) return
    const known = this.#sent.get(id)
    if (known) known.count++
    else this.#sent.set(id, { count: 1, text: bytes.toString().slice(0, 2000) })
  }

  take({ id }: Message): void {
    this.#answered.set(id, (this.#answered.get(id) ?? 0) + 1)
    this.#look()
  }

  /** Settles when each request has its answer; throws a Fault if one never comes, or comes too often. */
  async all(where: string): Promise<void> {
    const missing = () => [...this.#sent].find(([id]) => !this.#answered.has(id))?.[1]
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Fault(`${where}: no answer to ${missing()?.text}`)), ANSWER_MS)
      this.#look = () => {
        if (missing()) return
        clearTimeout(timer)
        resolve()
      }
      this.#look()
    })
    for (const [id, { count, text }] of this.#sent)
      if ((this.#answered.get(id) ?? 0) > count) throw new Fault(`${where}: too many answers to ${text}`)
  }
}
