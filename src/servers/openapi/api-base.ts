import { type ApiServerOption, type CompiledApi, DocumentProblem } from './plan.ts'

/** Which server of the document is called, as the entry says. */
export interface ServerChoice {
  readonly baseUrl?: string | undefined // instead of those of the document
  readonly server?: string | number | undefined // its place in the list, or a part of its URL or description
  readonly variables: Readonly<Record<string, string>>
}

/** The document, as far as addresses depend on it. */
export interface DocumentOrigin {
  readonly url?: string | undefined // undefined: it is a file of this machine
  readonly hasCredentials: boolean // of the entry, which are not for every host that a document names
}

/** The address of the API, without a slash at its end. Throws DocumentProblem. */
export const findApiBase = (
  { servers }: Pick<CompiledApi, 'servers'>,
  choice: ServerChoice,
  document: DocumentOrigin,
): string => {
  if (choice.baseUrl !== undefined) return withoutSlash(choice.baseUrl)
  const server = chooseServer(servers, choice.server)
  return resolveServer(server, choice.variables, document, document.url)
}

/** The address of an operation that has a server of its own. Throws DocumentProblem. */
export const findOperationBase = (
  server: ApiServerOption | undefined,
  base: string,
  choice: ServerChoice,
  document: DocumentOrigin,
): string => {
  if (!server || choice.baseUrl !== undefined) return base
  return resolveServer(server, choice.variables, document, document.url ?? `${base}/`, base)
}

const chooseServer = (servers: readonly ApiServerOption[], wanted: string | number | undefined): ApiServerOption => {
  const found =
    typeof wanted === 'number'
      ? servers[wanted]
      : servers.find(({ url, description = '' }) => wanted === undefined || `${url}\n${description}`.includes(wanted))
  if (found) return found
  const known = servers
    .slice(0, 10)
    .map(({ url, description }, at) => `${at}: ${url}${description ? ` (${description})` : ''}`)
  throw new DocumentProblem(
    `has no server ${JSON.stringify(wanted)} in its document; "api.server" is one of ${known.join(', ').slice(0, 1000)}`,
  )
}

const resolveServer = (
  server: ApiServerOption,
  variables: Readonly<Record<string, string>>,
  { url: documentUrl, hasCredentials }: DocumentOrigin,
  relativeTo: string | undefined,
  sameAs?: string,
): string => {
  const filled = server.url.replace(/\{([^{}]+)\}/g, (_, name: string) => fillVariable(server, name, variables))
  const resolved = URL.parse(filled, relativeTo)
  if (!resolved)
    throw new DocumentProblem(`has a document that names no host (its server is "${filled}"): set "api.baseUrl"`)
  if (!/^https?:$/.test(resolved.protocol))
    throw new DocumentProblem(`has a document whose server is "${filled}": set "api.baseUrl" to an http or https URL`)
  const home = sameAs ?? documentUrl
  if (documentUrl !== undefined && hasCredentials && home !== undefined && new URL(home).origin !== resolved.origin)
    throw new DocumentProblem(
      `describes an API at ${resolved.origin}, which is not where its document is: the credentials of the entry are sent there only with "api": { "baseUrl": "${withoutSlash(resolved.origin + resolved.pathname)}" }`,
    )
  return withoutSlash(resolved.origin + resolved.pathname)
}

const fillVariable = (
  { variables: declared }: ApiServerOption,
  name: string,
  given: Readonly<Record<string, string>>,
): string => {
  const variable = Object.hasOwn(declared, name) ? declared[name] : undefined
  const value = (Object.hasOwn(given, name) ? given[name] : undefined) ?? variable?.default
  if (value === undefined || value === '')
    throw new DocumentProblem(`needs the variable "${name}" of its server: set "api.variables.${name}"`)
  if (variable?.allowed && !variable.allowed.includes(value))
    throw new DocumentProblem(
      `cannot use "${value}" for the variable "${name}" of its server; it is one of ${variable.allowed.join(', ').slice(0, 500)}`,
    )
  return value
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, '')
