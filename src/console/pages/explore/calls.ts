import { type Signal, signal } from '@preact/signals'
import type { Revision } from '../../../protocol/revisions.ts'
import type {
  CallProgress,
  LogMessage,
  McpClient,
  QuestionAnswer,
  ReceivedResult,
  ServerQuestion,
  WireLine,
} from '../../mcp/mcp-client.ts'
import { type JsonObject, McpError } from '../../mcp/messages.ts'
import type { ExploreKind } from './kinds.ts'

/** A question that waits for the user. */
export interface OpenQuestion {
  readonly id: string
  readonly askedAt: number // Unix time in milliseconds
  readonly question: ServerQuestion
  readonly answer: (answer: QuestionAnswer) => void
}

export interface CallState {
  readonly phase: 'running' | 'done' | 'failed' | 'cancelled'
  readonly endedAt?: number | undefined
  readonly progress?: CallProgress | undefined
  readonly logs: readonly LogMessage[]
  readonly wire: readonly WireLine[]
  readonly dropped: number // log messages and messages that are no longer kept
  readonly questions: readonly OpenQuestion[]
  readonly result?: ReceivedResult | undefined
  readonly error?: McpError | undefined
}

/** A request that the user made, with everything that came back. */
export interface CallRecord {
  readonly id: number
  readonly target: string
  readonly revision: Revision
  readonly kind: ExploreKind | 'outside' // outside: a question of the server that belongs to no call
  readonly method: string
  readonly subject: string // the name or URI
  readonly params: JsonObject
  readonly startedAt: number
  readonly state: Signal<CallState>
  readonly cancel: () => void
}

export interface NewCall extends Pick<CallRecord, 'target' | 'revision' | 'kind' | 'method' | 'subject' | 'params'> {
  readonly client: McpClient
  readonly inputSchema?: unknown
}

const MOST_CALLS = 100
const MOST_CHARACTERS = 128 * 2 ** 20 // of all messages that are kept
const MOST_LOGS = 1000
const MOST_WIRE = 400

/** The calls of this page, newest first. */
export const calls = signal<readonly CallRecord[]>([])
/** How long a call may be silent, in milliseconds; 0: for ever. Progress and questions start it again. */
export const silenceMs = signal(300_000)

let lastId = 0

const EMPTY: CallState = { phase: 'running', logs: [], wire: [], dropped: 0, questions: [] }

/** Sends a request and follows it. */
export const startCall = (call: NewCall): CallRecord => {
  const abort = new AbortController()
  const state = signal<CallState>(EMPTY)
  const { client, inputSchema, ...about } = call
  const record: CallRecord = { ...about, id: ++lastId, startedAt: Date.now(), state, cancel: () => abort.abort() }
  const patch = createPatcher(state)
  const silence = watchSilence(abort, () => state.peek().questions.length > 0)
  remember(record)
  use(client)

  call.client
    .request(call.method, call.params, {
      signal: abort.signal,
      inputSchema,
      onProgress: progress => {
        silence.restart()
        patch(draft => ({ ...draft, progress }))
      },
      onLog: message => {
        silence.restart()
        patch(draft => bounded({ ...draft, logs: [...draft.logs, message] }))
      },
      onWire: line => patch(draft => bounded({ ...draft, wire: [...draft.wire, line] })),
      onQuestion: question => askUser(patch, question).finally(silence.restart),
      onWaiting: check => {
        const waiting = { target: call.target, check }
        waitingCalls.add(waiting)
        return () => waitingCalls.delete(waiting)
      },
    })
    .then(
      result => patch(draft => ({ ...draft, phase: 'done', result, questions: [] })),
      (error: unknown) => {
        const failure = silence.isOver() ? timedOut() : asError(error)
        const phase = failure.reason === 'cancelled' ? 'cancelled' : 'failed'
        patch(draft => ({ ...draft, phase, error: failure, questions: [] }))
      },
    )
    .finally(() => {
      silence.end()
      leave(client)
      patch.flush(draft => ({ ...draft, endedAt: Date.now() }))
      forgetOld()
    })
  return record
}

const waitingCalls = new Set<{ readonly target: string; readonly check: () => void }>()

/** Asks whether the calls of a target still wait: a server of it has changed, and with its process its questions end. */
export const checkWaiting = (target: string): void => {
  for (const waiting of [...waitingCalls]) if (waiting.target === target) waiting.check()
}

/** How many calls each client makes. */
const inUse = new Map<McpClient, number>()
const closing = new Set<McpClient>()

const use = (client: McpClient): void => void inUse.set(client, (inUse.get(client) ?? 0) + 1)

const leave = (client: McpClient): void => {
  const rest = (inUse.get(client) ?? 1) - 1
  if (rest > 0) return void inUse.set(client, rest)
  inUse.delete(client)
  if (closing.delete(client)) client.close()
}

/** Closes a client once its calls have ended: a question of one may still wait for the user. */
export const closeWhenIdle = (client: McpClient): void => {
  if (inUse.has(client)) closing.add(client)
  else client.close()
}

/** The page is left: what calls ask is cancelled. */
export const closeAllInUse = (): void => {
  for (const client of inUse.keys()) client.close()
}

const asError = (error: unknown): McpError =>
  error instanceof McpError ? error : new McpError('invalid', error instanceof Error ? error.message : String(error))

const timedOut = (): McpError =>
  new McpError(
    'timeout',
    `The server sent nothing for ${silenceMs.peek() / 1000} s, so the call was cancelled. Choose a longer limit to wait for it`,
  )

type Change = (draft: CallState) => CallState

/** Changes are collected and shown once a frame: a server may send thousands of messages a second. */
const createPatcher = (state: Signal<CallState>) => {
  let draft = state.peek()
  let isDue = false
  const show = (): void => {
    isDue = false
    state.value = draft
  }
  const patch = (change: Change): void => {
    draft = change(draft)
    if (isDue) return
    isDue = true
    setTimeout(show, FRAME_MS) // a hidden tab has no frames, but the call goes on
  }
  return Object.assign(patch, {
    flush: (change: Change): void => {
      draft = change(draft)
      show()
    },
  })
}
const FRAME_MS = 16

const bounded = (draft: CallState): CallState => {
  const [logs, wire] = [draft.logs.slice(-MOST_LOGS), draft.wire.slice(-MOST_WIRE)]
  const dropped = draft.dropped + draft.logs.length - logs.length + draft.wire.length - wire.length
  return { ...draft, logs, wire, dropped }
}

/** Ends a call that is silent for too long. It may take any time while the user is asked. */
const watchSilence = (abort: AbortController, isAsking: () => boolean) => {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false
  const restart = (): void => {
    clearTimeout(timer)
    if (silenceMs.peek() === 0 || abort.signal.aborted) return
    timer = setTimeout(() => {
      if (isAsking()) return restart()
      isOver = true
      abort.abort()
    }, silenceMs.peek())
  }
  restart()
  return { restart, end: () => clearTimeout(timer), isOver: () => isOver }
}

type Patch = ReturnType<typeof createPatcher>
let lastQuestion = 0

/** Shows a question until the user answers or the server no longer waits. */
const askUser = (patch: Patch, question: ServerQuestion): Promise<QuestionAnswer> =>
  new Promise(resolve => {
    const id = `question-${++lastQuestion}`
    const close = (): void =>
      patch.flush(draft => ({ ...draft, questions: draft.questions.filter(each => each.id !== id) }))
    const answer = (given: QuestionAnswer): void => {
      close()
      resolve(given)
    }
    question.withdrawn.addEventListener('abort', close, { once: true })
    patch.flush(draft => ({ ...draft, questions: [...draft.questions, { id, askedAt: Date.now(), question, answer }] }))
  })

/** Answers that the user gives no answer. A call whose question has no such answer is cancelled. */
export const dismissQuestion = ({ question, answer }: OpenQuestion): void =>
  question.method === 'elicitation/create'
    ? answer({ kind: 'result', result: { action: 'cancel' } })
    : answer({ kind: 'refuse', message: 'The user dismissed the question' })

/** A question that belongs to no call gets a record of its own. */
export const askOutside = (target: string, revision: Revision, question: ServerQuestion): Promise<QuestionAnswer> => {
  const state = signal<CallState>(EMPTY)
  const patch = createPatcher(state)
  const record: CallRecord = {
    id: ++lastId,
    target,
    revision,
    kind: 'outside',
    method: question.method,
    subject: 'A question outside of a call',
    params: question.params,
    startedAt: Date.now(),
    state,
    cancel: () => {},
  }
  remember(record)
  const end = (phase: CallState['phase']): void =>
    patch.flush(draft => ({ ...draft, phase, endedAt: Date.now(), questions: [] }))
  question.withdrawn.addEventListener('abort', () => end('cancelled'), { once: true })
  return askUser(patch, question).finally(() => end('done'))
}

const remember = (record: CallRecord): void => {
  calls.value = [record, ...calls.peek()]
  forgetOld()
}

/** Drops the oldest calls that have ended, where there are too many or their messages are too large. */
const forgetOld = (): void => {
  let characters = 0
  let kept = 0
  const next = calls.peek().filter(record => {
    const { phase, wire, result } = record.state.peek()
    characters += (result?.text.length ?? 0) + wire.reduce((sum, { text }) => sum + text.length, 0)
    const isKept = phase === 'running' || kept === 0 || (kept < MOST_CALLS && characters < MOST_CHARACTERS)
    if (isKept) kept++
    return isKept
  })
  if (next.length < calls.peek().length) calls.value = next
}

/** The newest call of an item. */
export const latestCall = (target: string, kind: ExploreKind, subject: string): CallRecord | undefined =>
  calls.value.find(each => each.target === target && each.kind === kind && each.subject === subject)

export const isAnyRunning = (): boolean => calls.peek().some(({ state }) => state.peek().phase === 'running')
