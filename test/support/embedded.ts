import { Abort } from '../../src/protocol/cancellation.ts'
import type { Caller, Frame, Question, Upstream } from '../../src/protocol/exchange.ts'
import { Json, type Plain, type PlainObject } from '../../src/wire/json/json.ts'

/** A modern caller over stateless HTTP that can answer everything, unless told otherwise. */
export const callerOf = (over: Partial<Caller> = {}): Caller => ({
  workspace: 'default',
  principal: undefined,
  revision: '2026-07-28',
  capabilities: Json.of({ sampling: {}, elicitation: {}, roots: {} }),
  headers: new Map(),
  ...over,
})

/** One exchange with an upstream and all that came back so far. */
export interface Talk {
  readonly frames: readonly Frame[]
  readonly abort: Abort
  /** Resolves with the n-th frame (from 0) that fits, now or when it comes. */
  frame<T extends Frame>(fits: (frame: Frame) => frame is T, n?: number): Promise<T>
  question(key: string): Promise<Question>
  /** The value of the result; rejects on a failure. */
  result(): Promise<unknown>
  /** The error; rejects on a result. */
  failure(): Promise<{ code: number; message: string; data: unknown }>
}

export interface TalkOptions {
  readonly caller?: Partial<Caller>
  readonly kind?: 'request' | 'notification'
  /** Called for every frame; a promise says that the reader is behind. */
  readonly onFrame?: (frame: Frame) => void | Promise<void>
}

type Last = Extract<Frame, { kind: 'result' | 'failure' }>
export const isLast = (frame: Frame): frame is Last => frame.kind === 'result' || frame.kind === 'failure'
const isQuestion = (frame: Frame): frame is Question => frame.kind === 'question'

/** Sends one request to an upstream through its front door. */
export const talk = async (
  upstream: Upstream,
  method: string,
  params: PlainObject | Json = {},
  { caller, kind = 'request', onFrame }: TalkOptions = {},
): Promise<Talk> => {
  const frames: Frame[] = []
  const waiting = new Set<() => void>()
  const abort = new Abort()
  const who = callerOf(caller)
  const peer = await upstream.open(who)
  const sink = (frame: Frame): void | Promise<void> => {
    frames.push(frame)
    for (const look of [...waiting]) look()
    return onFrame?.(frame)
  }
  peer.dispatch({ kind, method, params: Json.of(params as Plain), caller: who, signal: abort, sink })

  const frame = <T extends Frame>(fits: (frame: Frame) => frame is T, n = 0): Promise<T> =>
    new Promise(resolve => {
      const look = (): void => {
        const found = frames.filter(fits)[n]
        if (!found) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  return {
    frames,
    abort,
    frame,
    question: key => frame((f): f is Question => isQuestion(f) && f.key === key),
    result: async () => {
      const last = await frame(isLast)
      if (last.kind === 'failure') throw new Error(`${last.error.code} ${last.error.message}`)
      return last.result.toValue()
    },
    failure: async () => {
      const last = await frame(isLast)
      if (last.kind === 'result') throw new Error(`Expected a failure, got ${last.result}`)
      return { code: last.error.code, message: last.error.message, data: last.error.data?.toValue() }
    },
  }
}

/** The notices of a talk, as plain data. */
export const noticesOf = ({ frames }: Talk): { method: string; params: unknown }[] =>
  frames.flatMap(frame => (frame.kind === 'notice' ? [{ method: frame.method, params: frame.params.toValue() }] : []))

/** Answers a question with a result. */
export const reply = (question: Question, result: Plain): void =>
  question.answer({ kind: 'result', result: Json.of(result) })
