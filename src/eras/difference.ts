import type { RpcError } from '../protocol/errors.ts'
import type { Json } from '../wire/json.ts'

/** Reshapes one payload of a method; returns its argument where nothing differs. */
export type Shape = (method: string, payload: Json) => Json

/**
 * How a revision differs from the next newer one. `up` turns the older form into the newer, `down` the
 * reverse. Each touches only the members it names; an absent member means: no difference.
 */
export interface Difference {
  readonly params?: { readonly up?: Shape; readonly down?: Shape } // of requests and notifications of the client
  readonly result?: { readonly up?: Shape; readonly down?: Shape }
  readonly notice?: { readonly up?: Shape; readonly down?: Shape } // what the server says
  readonly error?: { readonly up?: ErrorShape; readonly down?: ErrorShape }
  readonly question?: { readonly up?: Shape; readonly down?: Shape }
  readonly answer?: { readonly up?: Shape; readonly down?: Shape }
}

/** Reshapes an error; `params` are those of the request it answers. */
export type ErrorShape = (method: string, error: RpcError, params: Json) => RpcError
