/** Why something is not done that was asked for; the words reach the caller as `error`. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
}
