import type { ServerResponse } from 'node:http'
import { sendEmpty, sendEvents, sendJson } from '../http/response.ts'

/** What becomes of a request: the bytes of its answer, or none where it was cancelled. */
export type Outcome = Buffer[] | 'none'

const [OPEN, COMMA, CLOSE] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')]

/** The answers to the requests of one POST, in their order. */
export class Answers {
  readonly #outcomes: (Outcome | undefined)[] = []
  readonly #isBatch: boolean

  constructor(isBatch: boolean) {
    this.#isBatch = isBatch
  }

  /** True once every request has its answer. */
  get isComplete(): boolean {
    return this.#outcomes.length > 0 && this.#outcomes.every(known => known !== undefined)
  }

  /** Those that are there, without the cancelled ones. */
  get known(): Buffer[][] {
    return this.#outcomes.filter((outcome): outcome is Buffer[] => outcome !== undefined && outcome !== 'none')
  }

  /** Announces a request; the returned number names it. */
  expect(): number {
    return this.#outcomes.push(undefined) - 1
  }

  give(index: number, outcome: Outcome): void {
    this.#outcomes[index] = outcome
  }

  has(index: number): boolean {
    return this.#outcomes[index] !== undefined
  }

  /** Sends them as events, one each. */
  sendAsEvents(response: ServerResponse): void {
    const bodies = this.known
    if (bodies.length === 0) sendEmpty(response, 202)
    else sendEvents(response, bodies)
  }

  /** Sends them as one JSON body: a batch as an array, whatever is left of it. */
  sendTo(response: ServerResponse): void {
    const bodies = this.known
    const [first] = bodies
    if (!first) return sendEmpty(response, 202)
    if (!this.#isBatch) return sendJson(response, 200, first)
    sendJson(response, 200, [OPEN, ...bodies.flatMap((body, i) => (i === 0 ? body : [COMMA, ...body])), CLOSE])
  }
}
