/** Where a model answers: anything that speaks OpenAI's HTTP interface. */
export interface EndpointOptions {
  readonly url: string // up to and including the version, like https://api.example.com/v1
  readonly key?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly timeoutMs?: number | undefined
}

/** What one tenant may use; without a number there is no limit. */
export interface Limits {
  readonly tokensPerDay?: number | undefined // days of UTC
  readonly callsPerMinute?: number | undefined
}

/** A model that reads episodes for entities and facts. */
export interface ExtractionOptions extends EndpointOptions {
  readonly model: string
  readonly smallModel?: string | undefined // for comparing with what is known; the same one when absent
  readonly budget?: Limits | undefined
  readonly entityTypes?: Readonly<Record<string, string>> | undefined // name → what it means
  readonly parameters?: Readonly<Record<string, unknown>> | undefined // further members of every request
  readonly mostCharacters?: number | undefined // of an episode that are shown; the rest is read by rules alone
}

/** A model that turns texts into vectors. */
export interface EmbeddingOptions extends EndpointOptions {
  readonly model: string
  readonly dimensions?: number | undefined // asked for and insisted on
  readonly batch?: number | undefined // texts in one call
  readonly budget?: Limits | undefined // of background work; queries are not counted
  readonly queryTimeoutMs?: number | undefined
  readonly trusted?: boolean | undefined // believed without the check that it tells like from unlike
}
