import type { ApiSecurity, ApiServerOption, DeclaredLogin } from '../plan.ts'
import { type ApiDocument, BrokenReference } from './api-document.ts'
import { isApiObject, itemsOf, memberOf, memberPairs, textItems, textMember } from './shape.ts'
import { swaggerSchemes, swaggerServers } from './swagger.ts'

/** What the document says about credentials: only the schemes that it requires somewhere. */
export const readSecurity = (document: ApiDocument): ApiSecurity => {
  const schemes = document.isSwagger
    ? swaggerSchemes(document)
    : (memberOf(memberOf(document.root, 'components'), 'securitySchemes') ?? {})
  const used = requiredSchemes(document)
  const found = memberPairs(schemes)
    .filter(([name]) => used.has(name))
    .map(([name, value]) => [name, followScheme(document, value)] as const)
  const needs = found.flatMap(([name, scheme]) => {
    const need = describeScheme(scheme)
    return need === undefined ? [] : [`${need} (security scheme "${name.slice(0, 50)}")`]
  })
  const login = found.map(([, scheme]) => loginOf(scheme)).find(each => each !== undefined)
  return { needs, ...(login && { login }) }
}

const followScheme = (document: ApiDocument, value: unknown): unknown => {
  try {
    return document.follow(document.at(value)).value
  } catch (error) {
    if (error instanceof BrokenReference) return undefined
    throw error
  }
}

/** The names in `security` of the document and of its operations. */
const requiredSchemes = ({ root }: ApiDocument): ReadonlySet<string> => {
  const operations = memberPairs(memberOf(root, 'paths')).flatMap(([, item]) =>
    memberPairs(item).map(([, each]) => each),
  )
  const lists = [memberOf(root, 'security'), ...operations.map(operation => memberOf(operation, 'security'))]
  return new Set(lists.flatMap(list => itemsOf(list).flatMap(each => (isApiObject(each) ? Object.keys(each) : []))))
}

const PLACES: Readonly<Record<string, (name: string) => string>> = {
  header: name => `the header "${name}" in "headers"`,
  query: name => `the parameter "${name}" in "api.query"`,
  cookie: name => `the cookie "${name}" as header "Cookie" in "headers"`,
}

/** What to configure for a scheme. */
const describeScheme = (scheme: unknown): string | undefined => {
  switch (memberOf(scheme, 'type')) {
    case 'apiKey':
      return PLACES[textMember(scheme, 'in') ?? '']?.(textMember(scheme, 'name') ?? '')
    case 'http': {
      const kind = textMember(scheme, 'scheme')?.toLowerCase() ?? 'bearer'
      return `the header "Authorization" with a ${kind === 'basic' ? 'user and password (Basic)' : `${kind} token`} in "headers"`
    }
    case 'oauth2':
    case 'openIdConnect':
      return 'a login ("oauth"), or the header "Authorization" in "headers"'
    case 'mutualTLS':
      return 'a client certificate, which the gateway cannot show'
    default:
      return undefined
  }
}

const loginOf = (scheme: unknown): DeclaredLogin | undefined => {
  const flow = memberOf(memberOf(scheme, 'flows'), 'authorizationCode')
  const [authorizationUrl, tokenUrl] = [textMember(flow, 'authorizationUrl'), textMember(flow, 'tokenUrl')]
  if (authorizationUrl === undefined || tokenUrl === undefined) return undefined
  return { authorizationUrl, tokenUrl, scopes: memberPairs(memberOf(flow, 'scopes')).map(([scope]) => scope) }
}

/** The servers of the document; one of an operation is read with the same function. */
export const readServers = (document: ApiDocument): readonly ApiServerOption[] => {
  const given = document.isSwagger ? swaggerServers(document) : memberOf(document.root, 'servers')
  const read = readServerList(given)
  return read.length > 0 ? read : [{ url: '/', variables: {} }]
}

export const readServerList = (list: unknown): readonly ApiServerOption[] =>
  itemsOf(list).flatMap(server => {
    const url = textMember(server, 'url')
    const variables = memberPairs(memberOf(server, 'variables')).map(([name, variable]) => {
      const allowed = textItems(memberOf(variable, 'enum'))
      return [name, { default: String(memberOf(variable, 'default') ?? ''), ...(allowed.length > 0 && { allowed }) }]
    })
    return url === undefined
      ? []
      : [{ url, description: textMember(server, 'description'), variables: Object.fromEntries(variables) }]
  })
