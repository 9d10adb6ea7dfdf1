import type { RpcError } from '../protocol/errors.ts'
import type { Json } from '../wire/json/json.ts'

/** How a revision differs from the next newer one: `up` converts older to newer, `down` newer to older. */
export interface RevisionDifference {
  readonly up: Converters
  readonly down: Converters
}

/**
 * The conversions of one direction. Each changes only the members it names and returns its argument if nothing differs;
 * an absent one means: no difference.
 */
export interface Converters {
  readonly params?: PayloadConverter // of requests and notifications of the client
  readonly result?: PayloadConverter
  readonly notice?: PayloadConverter // params of notifications of the server
  readonly error?: ErrorConverter
  readonly question?: QuestionConverter
  readonly answer?: AnswerConverter
}

export type PayloadConverter = (method: string, payload: Json) => Json

/** `params` are those of the request the error answers, `capabilities` those of the client that sent it. */
export type ErrorConverter = (
  method: string,
  error: RpcError,
  params: Json,
  capabilities: Json,
) => RpcError | ErrorAsResult

export type QuestionConverter = (method: string, params: Json) => Json | RejectedQuestion

/** `question` are the params of what is answered, as the server wrote them. */
export type AnswerConverter = (method: string, result: Json, question: Json) => Json | InvalidAnswer

/** An error that the client's revision reports as a result. */
export interface ErrorAsResult {
  readonly result: Json
}

/** The client's revision cannot express the question: the server gets this error. */
export interface RejectedQuestion {
  readonly rejection: RpcError
}

/** The answer breaks a rule that the client's revision cannot express: the text for the user when the question is repeated. */
export interface InvalidAnswer {
  readonly problem: string
}
