import { Validator } from '@cfworker/json-schema'
import { scriptedServer } from './scripted-server.ts'

type Obj = Readonly<Record<string, unknown>>

const objectOf = (value: unknown): Obj =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Obj) : {}
const listOf = (value: unknown): readonly Obj[] => (Array.isArray(value) ? value.map(objectOf) : [])

/** How a single value is written, by its type. */
const TYPES: Readonly<Record<string, RegExp>> = {
  integer: /^-?\d+$/,
  number: /^-?\d+(\.\d+)?$/,
  boolean: /^(true|false)$/,
}

/** The server of an OpenAPI document that checks each request by it, and answers `{}`. */
export const startDocumentApi = async (document: Obj) => {
  const problems: string[] = []
  const resolve = (value: Obj): Obj => {
    const { $ref } = value
    if (typeof $ref !== 'string') return value
    return resolve(
      objectOf(
        $ref
          .slice(2)
          .split('/')
          .reduce<unknown>((at, step) => objectOf(at)[step.replaceAll('~1', '/')], document),
      ),
    )
  }
  const paths = Object.entries(objectOf(document.paths)).map(([path, item]) => ({
    path,
    literal: path.replace(/\{[^}]*\}/g, '').length,
    names: [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name),
    pattern: new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]*\}/g, '([^?]+)')}$`),
    item: resolve(objectOf(item)),
  }))
  paths.sort((a, b) => b.literal - a.literal) // of several that fit, the most specific one is meant

  /** A property that is read only may be required, but in answers alone. */
  const forRequest = (schema: Obj): Obj =>
    JSON.parse(JSON.stringify(schema), (_, value: unknown) => {
      const { properties, required } = objectOf(value)
      if (!Array.isArray(required) || properties === undefined) return value
      const isWritten = (name: string): boolean => resolve(objectOf(objectOf(properties)[name])).readOnly !== true
      return { ...objectOf(value), required: required.filter(isWritten) }
    }) as Obj

  /** A schema with the parts of the document that it refers to; a validator reads all that it is given. */
  const withReferences = (schema: unknown): Obj => {
    const whole: Record<string, unknown> = { allOf: [forRequest(objectOf(schema))] }
    const known = new Set<string>()
    const visit = (value: unknown): void => {
      if (Array.isArray(value)) return value.forEach(visit)
      for (const [name, member] of Object.entries(objectOf(value)))
        if (name === '$ref' && typeof member === 'string' && !known.has(member)) add(member)
        else visit(member)
    }
    const add = (ref: string): void => {
      known.add(ref)
      const steps = ref.slice(2).split('/')
      let place = whole
      for (const step of steps.slice(0, -1)) {
        place[step] ??= {}
        place = place[step] as Record<string, unknown>
      }
      const found = forRequest(resolve({ $ref: ref }))
      place[steps.at(-1) ?? ''] = found
      visit(found)
    }
    visit(schema)
    return whole
  }

  const schemaProblem = (schema: unknown, value: unknown): string | undefined => {
    const { valid, errors } = new Validator(withReferences(schema), '2020-12', true).validate(value)
    return valid ? undefined : errors.map(({ error, instanceLocation }) => `${instanceLocation} ${error}`).at(-1)
  }

  const checkBody = (operation: Obj, parameters: readonly Obj[], type: string, text: string): string | undefined => {
    const body = resolve(objectOf(operation.requestBody))
    const media = Object.entries(objectOf(body.content)).find(([name]) => type.startsWith(name.split(';')[0] ?? ''))
    const inBody = parameters.find(parameter => parameter.in === 'body')
    if (text === '') return body.required === true || inBody?.required === true ? 'the body is missing' : undefined
    if (!type.startsWith('application/json')) return undefined
    const schema = media ? objectOf(media[1]).schema : inBody?.schema
    if (operation.requestBody && !media) return `the type ${type} is not in the document`
    return schema === undefined ? undefined : schemaProblem(schema, JSON.parse(text))
  }

  /** Whether the text of a single value can be what the schema says. */
  const fits = (schema: Obj, value: string): boolean => {
    const { type, enum: values, pattern } = resolve(schema)
    const isOfType = typeof type !== 'string' || (TYPES[type]?.test(value) ?? true)
    const isListed = type !== 'string' || !Array.isArray(values) || values.includes(value)
    return (
      isOfType && isListed && (type !== 'string' || typeof pattern !== 'string' || new RegExp(pattern, 'u').test(value))
    )
  }

  const checkValues = (parameters: readonly Obj[], url: URL, inPath: Readonly<Record<string, string>>) => {
    const known = (place: string): readonly Obj[] => parameters.filter(parameter => parameter.in === place)
    for (const key of url.searchParams.keys())
      if (!known('query').some(({ name }) => key === name || key.startsWith(`${name}[`)))
        return `the query parameter ${key} is not in the document`
    for (const [place, readValue] of Object.entries({
      query: (name: string) => url.searchParams.get(name),
      path: (name: string) => inPath[name] ?? null,
    }))
      for (const parameter of known(place)) {
        const value = readValue(String(parameter.name))
        const schema = parameter.schema === undefined ? parameter : objectOf(parameter.schema)
        if (value !== null && !fits(schema, value)) return `the ${place} parameter ${parameter.name} cannot be ${value}`
      }
    return undefined
  }

  const check = (method: string, url: URL, headers: Obj, text: string): string | undefined => {
    const path = decodeURI(url.pathname)
    const found = paths.find(({ pattern, item }) => pattern.test(path) && item[method] !== undefined)
    if (!found) return 'there is no such operation'
    const operation = objectOf(found.item[method])
    const parameters = [...listOf(found.item.parameters), ...listOf(operation.parameters)].map(resolve)
    const form = new URLSearchParams(String(headers['content-type']).includes('urlencoded') ? text : '')
    for (const { name, required, in: place } of parameters) {
      const isThere = { query: url.searchParams, formData: form }[String(place)]?.has(String(name))
      const isPresent = place === 'header' ? headers[String(name).toLowerCase()] !== undefined : isThere
      const isList = [...url.searchParams.keys()].some(key => key.startsWith(`${name}[`))
      if (required === true && isPresent === false && !isList) return `the ${place} parameter ${name} is missing`
    }
    const values = found.pattern.exec(path)?.slice(1) ?? []
    const inPath = Object.fromEntries(values.map((value, at) => [found.names[at], decodeURIComponent(value)]))
    return (
      checkValues(parameters, url, inPath) ??
      checkBody(operation, parameters, String(headers['content-type'] ?? ''), text)
    )
  }

  const server = await scriptedServer(({ method, url, headers, text }, response) => {
    const at = new URL(url, 'http://api.test')
    const problem = check(method.toLowerCase(), at, headers, text)
    if (problem !== undefined) problems.push(`${method} ${at.pathname}: ${problem}`)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  return { url: new URL(server.url).origin, problems, arrivals: server.arrivals, close: server.close }
}
