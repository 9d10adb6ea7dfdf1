/** Why an operation of a built-in server was refused; it decides the status of the response. */
export type OperationRefusal =
  | 'invalid' // the arguments
  | 'missing' // what they name does not exist
  | 'busy' // try again
  | 'failed' // the storage; the message says what to do

/** An operation was refused. The message is for the caller; any other error is a bug. */
export class OperationError extends Error {
  readonly refusal: OperationRefusal
  constructor(refusal: OperationRefusal, message: string) {
    super(message)
    this.name = 'OperationError'
    this.refusal = refusal
  }
}
