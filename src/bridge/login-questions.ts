import { randomUUID } from 'node:crypto'
import { Abort } from '../protocol/cancellation.ts'
import { deliver, failWith } from '../protocol/deliver.ts'
import { NoAnswer, type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Dispatch, Exchange, Frame, LoginWait } from '../protocol/exchange.ts'
import { decodeLoginState, encodeLoginState, type LoginState } from '../protocol/login-state.ts'
import { META } from '../protocol/meta.ts'
import { methodInfo } from '../protocol/methods.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import type { LoginFailed, LoginNeeded } from '../protocol/oauth.ts'
import { isModern } from '../protocol/revisions.ts'
import { sendRequest } from '../protocol/send-request.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'
import { questionRefusal } from './client-questions.ts'

const WAIT_MS = 120_000 // for the user to log in; then the client is asked again
const MOST_ROUNDS = 5
const KEY = 'login' // of the question
const URL_MODE = Json.of({ mode: 'url' })

/** What the calls to one server need when a login is missing. */
export interface LoginQuestionsOptions {
  readonly server: string
  /** Starts a login of that principal, or finds the pending one. Never rejects. */
  readonly begin: (principal: string | undefined) => Promise<LoginNeeded | LoginFailed>
  /** The listener is called after a login of that principal came or went; undefined: of every principal. */
  readonly onChanged: (listener: (principal: string | undefined) => void) => () => void
  /** Sends a request to the server once more, from above the bridge: what it is may be known only now. */
  readonly dispatch: Dispatch
  readonly questionTtlMs: number
  readonly waitMs?: number | undefined
}

/** A link for the user, with the text that contains it. */
interface ShownLink {
  readonly url: string
  readonly text: string
}

/**
 * Asks the user of a call to log in, if the server wants that first, and sends the call again afterwards. A legacy client
 * is asked while its call waits. A modern one gets an `input_required` result and repeats the call: nothing is kept
 * meanwhile, so any replica can go on with it, also after a restart.
 */
export class LoginQuestions {
  readonly #options: LoginQuestionsOptions

  constructor(options: LoginQuestionsOptions) {
    this.#options = options
  }

  wrap(dispatch: Dispatch): Dispatch {
    return exchange => {
      if (exchange.kind !== 'request' || !methodInfo(exchange.method)?.asks) return dispatch(exchange)
      dispatch({
        ...exchange,
        sink: frame => {
          if (isLoginFailure(frame)) return void this.#required(exchange, frame.error)
          if (frame.kind === 'result' || frame.kind === 'failure') exchange.login?.wait?.stop()
          return exchange.sink(frame)
        },
      })
    }
  }

  /** Takes the retry of a modern client that was asked to log in; false if it is none. */
  resume(exchange: Exchange): boolean {
    const text = methodInfo(exchange.method)?.asks ? exchange.params.get('requestState')?.asString() : undefined
    const state = text === undefined ? undefined : decodeLoginState(text)
    if (!state) return false
    const action = exchange.params.at('inputResponses', KEY)?.get('action')?.asString()
    const { round, isTool, link } = state
    const restored = { ...exchange, params: restore(exchange.params, state), login: { round, link } }
    if (action === 'decline' || action === 'cancel') this.#declined(restored)
    else if (isTool) void this.#afterTool(restored, this.#waitFor(exchange))
    else if (action === 'accept')
      this.#options.dispatch({ ...restored, login: { round, link, wait: this.#waitFor(exchange) } })
    else this.#options.dispatch(restored) // without an answer it is asked again
    return true
  }

  async #required(exchange: Exchange, error: RpcError): Promise<void> {
    try {
      const { round = 0, link, wait } = exchange.login ?? {}
      if (wait) {
        // Another link: the login that the client was asked for is over, and the server wants one more.
        const next = error.data?.get('url')?.asString()
        if (next === undefined || next === link) await wait.changed
        wait.stop()
        if (!exchange.signal.reason) this.#options.dispatch({ ...exchange, login: { round } })
        return
      }
      await this.#ask(exchange, error, round + 1)
    } catch (thrown) {
      failWith(exchange, thrown)
    }
  }

  async #ask(exchange: Exchange, error: RpcError, round: number): Promise<void> {
    const isTool = error.data?.has('tool') === true
    const link = await this.#linkIn(exchange, error)
    if (exchange.signal.reason) return
    if ('code' in link) return this.#fail(exchange, link.message, link.data)
    const { capabilities, revision } = exchange.caller
    const canOpen = questionRefusal(capabilities, 'elicitation/create', URL_MODE) === undefined
    if (!canOpen || round > MOST_ROUNDS) return this.#showLink(exchange, link, isTool)
    const state = { server: this.#options.server, round, isTool, link: link.url }
    if (isModern(revision)) this.#askByResult(exchange, link, state)
    else this.#askLive(exchange, link, state)
  }

  /** The link of the error; a stand-in's error has none, because most of them are never used. */
  async #linkIn({ caller }: Exchange, { message, data }: RpcError): Promise<ShownLink | RpcError> {
    const { server, begin } = this.#options
    const url = data?.get('url')?.asString()
    if (url !== undefined) return { url, text: message }
    const begun = await begin(caller.principal)
    const text = `Server "${server}" ${begun.text}`
    if (begun.kind === 'login') return { url: begun.link.url, text }
    return rpcError('internal', text, Json.of({ reason: begun.reason, upstream: server }))
  }

  #askByResult({ params, sink }: Exchange, { url }: ShownLink, state: LoginState): void {
    const [serverState, responses] = [params.get('requestState')?.asString(), params.get('inputResponses')]
    void deliver(sink, {
      kind: 'result',
      result: Json.of({
        resultType: 'input_required',
        inputRequests: { [KEY]: { method: 'elicitation/create', params: this.#elicitation(url) } },
        requestState: encodeLoginState({ ...state, serverState, responses }),
      }),
    })
  }

  /** The call goes on when the user has logged in, whether or not the client has answered the question by then. */
  #askLive(exchange: Exchange, link: ShownLink, { round, isTool }: LoginState): void {
    const { sink, signal } = exchange
    const withdrawn = new Abort()
    const elicitationId = randomUUID()
    let timer = setTimeout(() => settle(() => this.#showLink(exchange, link, isTool)), this.#options.questionTtlMs)
    let isSettled = false
    const settle = (next: () => void): void => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      stopListening()
      stopWatching()
      withdrawn.abort({ kind: 'expired' })
      if (!signal.reason) next()
    }
    const goOn = (): void => {
      const params = Json.of({ elicitationId })
      void deliver(sink, { kind: 'notice', method: NOTIFICATIONS.elicitationComplete, params })
      if (isTool) void this.#afterTool({ ...exchange, login: { round } })
      else this.#options.dispatch({ ...exchange, login: { round } })
    }
    const stopListening = signal.onAbort(() => settle(() => {}))
    const stopWatching = this.#watch(exchange, () => settle(goOn))
    const answer = (reply: Answer): void => {
      if (isSettled || reply.kind === 'progress') return
      const isAccepted = reply.kind === 'result' && reply.result.get('action')?.isString('accept')
      if (!isAccepted) return settle(() => this.#declined(exchange))
      clearTimeout(timer)
      timer = setTimeout(() => settle(goOn), this.#options.waitMs ?? WAIT_MS) // asks again if there is still no login
    }
    const params = this.#elicitation(link.url).with('elicitationId', elicitationId)
    void deliver(sink, { kind: 'question', key: KEY, method: 'elicitation/create', params, withdrawn, answer })
  }

  #elicitation(url: string): Json {
    const message = `Server "${this.#options.server}" needs a login. Open the link and log in: the call then goes on by itself.`
    return Json.of({ mode: 'url', message, url })
  }

  /** The tool of the stand-in ends when the login is there; the server itself need not have such a tool. */
  async #afterTool(exchange: Exchange, wait?: LoginWait): Promise<void> {
    try {
      let missing = await this.#missing(exchange)
      if (wait && missing && (await this.#isPending(exchange))) {
        await wait.changed
        missing = exchange.signal.reason ? undefined : await this.#missing(exchange)
      }
      wait?.stop()
      if (exchange.signal.reason) return
      if (missing?.why !== undefined) return this.#impossible(exchange, missing.why)
      if (missing) return await this.#ask(exchange, TOOL_CALL, (exchange.login?.round ?? 0) + 1)
      const text = `You are logged in to server "${this.#options.server}". Its tools are listed now.`
      void deliver(exchange.sink, { kind: 'result', result: textResult(exchange, text) })
    } catch (thrown) {
      failWith(exchange, thrown)
    }
  }

  /** Whether the login is missing, and why it cannot be had if that is known. */
  async #missing({ caller, signal }: Exchange): Promise<{ readonly why: string | undefined } | undefined> {
    const listed = await sendRequest(this.#options.dispatch, caller, 'tools/list', Json.empty, signal)
    const tools = listed.get('tools')?.elements() ?? []
    const login = tools.map(tool => tool.at('_meta', META.login)).find(meta => meta !== undefined)
    return login && { why: login.get('error')?.asString() }
  }

  /** Whether the user can still log in by the link that the client has; otherwise that login is over. */
  async #isPending({ caller, login }: Exchange): Promise<boolean> {
    const begun = await this.#options.begin(caller.principal)
    return begun.kind === 'login' && begun.link.url === login?.link
  }

  #impossible(exchange: Exchange, text: string): void {
    this.#fail(exchange, text, Json.of({ reason: 'login_impossible', upstream: this.#options.server }))
  }

  #watch({ caller }: Exchange, listener: () => void): () => void {
    return this.#options.onChanged(principal => {
      if (principal === undefined || principal === caller.principal) listener()
    })
  }

  #waitFor(exchange: Exchange): LoginWait {
    let stop: () => void = () => {}
    const changed = new Promise<void>(resolve => {
      const timer = setTimeout(() => stop(), this.#options.waitMs ?? WAIT_MS).unref()
      const stopWatching = this.#watch(exchange, () => stop())
      const stopListening = exchange.signal.onAbort(() => stop())
      stop = () => {
        clearTimeout(timer)
        stopWatching()
        stopListening()
        resolve()
      }
    })
    return { changed, stop }
  }

  #declined(exchange: Exchange): void {
    const { server } = this.#options
    const data = Json.of({ reason: 'login_required', upstream: server })
    this.#fail(exchange, `The user did not log in to server "${server}", which this call needs`, data)
  }

  #showLink(exchange: Exchange, { text, url }: ShownLink, isTool: boolean): void {
    const { server } = this.#options
    if (isTool)
      return void deliver(exchange.sink, {
        kind: 'result',
        result: textResult(exchange, text, { _meta: { [META.login]: { server, url } } }),
      })
    this.#fail(exchange, text, Json.of({ reason: 'login_required', upstream: server, url }))
  }

  /** A tool call ends with text that the model reads, others with an error. */
  #fail(exchange: Exchange, text: string, data: Json | undefined): void {
    if (exchange.method !== 'tools/call')
      return void deliver(exchange.sink, { kind: 'failure', error: rpcError('internal', text, data) })
    const url = data?.get('url')
    const { server } = this.#options
    const meta = data && { _meta: { [META.login]: url ? { server, url } : { server } } }
    void deliver(exchange.sink, { kind: 'result', result: textResult(exchange, text, { isError: true, ...meta }) })
  }
}

/** The error of the stand-in's own tool. */
const TOOL_CALL = rpcError('internal', '', Json.of({ reason: 'login_required', tool: 'login' }))

/** Only the gateway's own errors: a server may write what it likes into its errors. */
const isLoginFailure = (frame: Frame): frame is Frame & { kind: 'failure' } =>
  frame.kind === 'failure' &&
  frame.error instanceof NoAnswer &&
  frame.error.data?.get('reason')?.isString('login_required') === true

const textResult = ({ caller }: Exchange, text: string, more: PlainObject = {}): Json =>
  Json.of({ ...(isModern(caller.revision) && { resultType: 'complete' }), content: [{ type: 'text', text }], ...more })

/** The params as the client sent them when it was asked. */
const restore = (params: Json, { serverState, responses }: LoginState): Json => {
  const bare = params.without('requestState', 'inputResponses')
  const withState = serverState === undefined ? bare : bare.with('requestState', serverState)
  return responses ? withState.with('inputResponses', responses) : withState
}
