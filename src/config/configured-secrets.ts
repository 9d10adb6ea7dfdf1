import type { CallerTemplates, CallerValues } from './caller-values.ts'
import { secretSpans } from './edit/secret-values.ts'
import type { ConfigPath } from './json-text.ts'
import type { BuiltinServer, Issuer, ServerConfig, ServerOAuth, Snapshot } from './snapshot.ts'

// The secrets of a checked configuration, wherever they are: the editor hides the same parts of the file.

/** The parts of a text that are secrets at this place; as they are written, and decoded where they are part of a URL. */
const secretsIn = (path: ConfigPath, text: string, before?: unknown): string[] =>
  secretSpans(path, text, before).flatMap(([from, to]) => {
    const part = text.slice(from, to)
    const decoded = decodedPart(part)
    return decoded === part ? [part] : [part, decoded]
  })

const decodedPart = (part: string): string => {
  if (!part.includes('%')) return part
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

type Texts = Readonly<Record<string, string>>

const secretsOfMap = (kind: 'headers' | 'env', texts: Texts): string[] =>
  Object.entries(texts).flatMap(([name, text]) => secretsIn([kind, name], text))

const secretsOfCallers = (kind: 'headers' | 'env', personal: CallerValues | undefined): string[] => {
  if (!personal) return []
  const { values, credentials = {} } = personal
  const ofTemplates = (templates: CallerTemplates): string[] =>
    Object.entries(templates).flatMap(([name, template]) =>
      template.flatMap(piece => (typeof piece === 'string' ? secretsIn([kind, name], piece) : [])),
    )
  const given = Object.values(credentials).map(each => (each.kind === 'values' ? each.values : {}))
  return [values, ...given].flatMap(ofTemplates)
}

/** The credentials of a client; of a key, its lines without those around them. */
const secretsOfOAuth = (oauth: ServerOAuth | false | undefined): (string | undefined)[] => {
  if (!oauth) return []
  const { clientSecret, privateKey } = oauth
  const assertion = oauth.grant === 'jwt_bearer' ? oauth.assertion : undefined
  const key = privateKey?.split('\n').filter(line => !line.startsWith('-----')) ?? []
  return [clientSecret, assertion, ...key]
}

const secretsOfBuiltin = (server: BuiltinServer): (string | undefined)[] =>
  server.builtin === 'memory'
    ? [
        server.extraction?.key,
        server.embeddings?.key,
        ...[server.database, server.extraction?.url, server.embeddings?.url].flatMap(secretsOfUrl),
      ]
    : []

const secretsOfUrl = (url: string | undefined): string[] => (url === undefined ? [] : secretsIn(['url'], url))

const secretsOfServer = (server: ServerConfig): (string | undefined)[] => {
  switch (server.kind) {
    case 'remote':
    case 'openapi':
      return [
        ...secretsOfUrl(server.url),
        ...secretsOfMap('headers', server.headers),
        ...secretsOfCallers('headers', server.personal),
        ...secretsOfOAuth(server.oauth),
        ...(server.kind === 'openapi' ? secretsOfApi(server) : []),
      ]
    case 'process':
      return [
        ...secretsOfMap('env', server.env),
        ...secretsOfCallers('env', server.personal),
        ...server.args.flatMap((text, at) => secretsIn(['args', at], text, server.args[at - 1])),
      ]
    case 'builtin':
      return secretsOfBuiltin(server)
    default:
      return []
  }
}

const secretsOfApi = ({ document, api }: Extract<ServerConfig, { kind: 'openapi' }>): string[] => [
  ...[document, api.baseUrl].flatMap(secretsOfUrl),
  ...[api.query, api.variables].flatMap((texts, at) =>
    Object.entries(texts).flatMap(([name, text]) => secretsIn(['api', at === 0 ? 'query' : 'variables', name], text)),
  ),
]

const secretsOfIssuer = ({ clientSecret, introspection }: Issuer): (string | undefined)[] => [
  clientSecret,
  introspection?.clientSecret,
]

/** All secrets of a configuration: of servers and their callers, of issuers, of the store and of telemetry. */
export const configuredSecrets = ({ servers, auth, store, telemetry }: Snapshot): readonly string[] => {
  const found = [
    ...[...servers.values()].flatMap(secretsOfServer),
    ...[...(auth?.issuers?.values() ?? [])].flatMap(secretsOfIssuer),
    ...secretsOfUrl(store?.url),
    ...(store?.secrets ?? []),
    ...[telemetry?.traces, telemetry?.metrics].flatMap(signal => secretsOfMap('headers', signal?.headers ?? {})),
  ]
  return [...new Set(found.filter(secret => secret !== undefined))]
}
