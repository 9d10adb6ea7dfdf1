// What the compiler makes of an OpenAPI document. Everything here passes between threads, so it is plain data.

/** An API as tools. */
export interface CompiledApi {
  readonly title: string
  readonly version: string
  readonly description?: string | undefined
  readonly tools: readonly CompiledTool[]
  readonly servers: readonly ApiServerOption[] // the first one is used, unless the entry chooses
  readonly security: ApiSecurity
  readonly skipped: readonly string[] // operations that are no tools, and why
  readonly files: readonly string[] // that were read besides the document, relative to it
}

/** One of the document's `servers`. */
export interface ApiServerOption {
  readonly url: string // may be relative to the document, and have variables in it
  readonly description?: string | undefined
  readonly variables: Readonly<Record<string, { readonly default: string; readonly allowed?: readonly string[] }>>
}

/** What the API wants to know of its callers. */
export interface ApiSecurity {
  readonly needs: readonly string[] // what to configure, as sentences; empty: nothing
  readonly login?: DeclaredLogin | undefined
}

/** The endpoints of an OAuth flow with a browser. */
export interface DeclaredLogin {
  readonly authorizationUrl: string
  readonly tokenUrl: string
  readonly scopes: readonly string[]
}

export interface CompiledTool {
  readonly name: string
  readonly definition: string // the tool as `tools/list` shows it, as JSON
  readonly plan: OperationPlan
}

/** How the arguments of a tool become an HTTP request, and what its response may be. */
export interface OperationPlan {
  readonly method: string // in capitals
  readonly path: string // with `{name}` for each path parameter
  readonly server?: ApiServerOption | undefined // undefined: that of the API
  readonly parameters: readonly ParameterPlan[]
  readonly body?: BodyPlan | undefined
  readonly accept: string
  readonly isJsonOnly: boolean // every success has a JSON body
}

export type ParameterPlace = 'path' | 'query' | 'header' | 'cookie'

/** The styles of OpenAPI 3, and the tabs of 2.0. */
export type ParameterStyle =
  | 'simple'
  | 'label'
  | 'matrix'
  | 'form'
  | 'spaceDelimited'
  | 'pipeDelimited'
  | 'tabDelimited'
  | 'deepObject'

/** How one value is written. */
export interface ValueStyle {
  readonly style: ParameterStyle
  readonly explode: boolean
  readonly allowReserved?: boolean | undefined
  readonly isJson?: boolean | undefined // the value is written as JSON
}

export interface ParameterPlan extends ValueStyle {
  readonly argument: string // of the tool
  readonly name: string // in the request
  readonly place: ParameterPlace
}

export interface BodyPlan {
  readonly argument: string
  readonly mediaType: string
  readonly kind: 'json' | 'form' | 'multipart' | 'text' | 'binary'
  readonly parts: Readonly<Record<string, PartPlan>> // of a form; other members are written as `form`, exploded
}

/** How one member of a form is written. */
export interface PartPlan extends ValueStyle {
  readonly mediaType?: string | undefined
  readonly isFile?: boolean | undefined // base64, or an object with `data`, `filename` and `mimeType`
}

/** Which operations become tools, and which parameters the entry sets itself. */
export interface CompileSettings {
  readonly include: readonly string[] // empty: all
  readonly exclude: readonly string[]
  readonly setHeaders: readonly string[] // in lower case
  readonly setQuery: readonly string[]
}

/** Why a document cannot be used; `message` continues the sentence `Server "x" …`. */
export class DocumentProblem extends Error {
  override readonly name = 'DocumentProblem'
  readonly isLasting: boolean // until the document or the entry changes

  constructor(message: string, isLasting = true) {
    super(message)
    this.isLasting = isLasting
  }
}
