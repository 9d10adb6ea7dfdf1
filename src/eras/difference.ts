import type { RpcError } from '../protocol/errors.ts'
import type { Json } from '../wire/json/json.ts'

/** How a revision differs from the next newer one: `up` turns the older form into the newer, `down` the reverse. */
export interface RevisionDifference {
  readonly up: Converters
  readonly down: Converters
}

/**
 * What is reshaped in one direction. Each shape touches only the members it names and returns its argument
 * where nothing differs; an absent one means: no difference.
 */
export interface Converters {
  readonly params?: Shape // of requests and notifications of the client
  readonly result?: Shape
  readonly notice?: Shape // what the server says
  readonly error?: ErrorShape
  readonly question?: QuestionShape
  readonly answer?: AnswerShape
}

export type Shape = (method: string, payload: Json) => Json

/** `params` are those of the request the error answers, `capabilities` those of the client that sent it. */
export type ErrorShape = (method: string, error: RpcError, params: Json, capabilities: Json) => RpcError | ErrorAsResult

export type QuestionShape = (method: string, params: Json) => Json | RejectedQuestion

/** `question` are the params of what is answered, as the asking server wrote them. */
export type AnswerShape = (method: string, result: Json, question: Json) => Json | InvalidAnswer

/** An error that the caller's revision tells as a result. */
export interface ErrorAsResult {
  readonly result: Json
}

/** The client's revision has no words for the question: the asker gets this error. */
export interface RejectedQuestion {
  readonly rejection: RpcError
}

/** The answer breaks a rule the client's revision could not state: what to tell the user before asking again. */
export interface InvalidAnswer {
  readonly problem: string
}
