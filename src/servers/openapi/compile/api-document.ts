import { $RefParser } from '@apidevtools/json-schema-ref-parser'
import { DocumentProblem } from '../plan.ts'
import { isApiObject, memberOf, textMember } from './shape.ts'

/** A part of a document, and the URL of the file it is in. */
export interface LocatedPart {
  readonly value: unknown
  readonly base: string
}

/** What a reference leads to; `id` is the same for all references to it. */
export type FollowedPart = LocatedPart & { readonly id?: string | undefined }

/** A reference that leads nowhere. The operation that needs it is left out. */
export class BrokenReference extends Error {
  override readonly name = 'BrokenReference'
}

/** Reads another file of the document. Rejects with a message for users. */
export type ReadPart = (url: string) => Promise<string>

const OTHER_FILE = /[$]ref["']?\s*:\s*["']?[^#"'\s]/ // without one, half of the time is saved
const MOST_HOPS = 50 // a reference to a reference to …

/** A parsed document with all files it refers to. */
export class ApiDocument {
  readonly root: unknown
  readonly url: string
  readonly version: string // as it is written
  readonly #files: ReadonlyMap<string, unknown> // by URL
  readonly #problems: ReadonlyMap<string, string> // why a file could not be read, by URL

  constructor(url: string, files: ReadonlyMap<string, unknown>, problems: ReadonlyMap<string, string>) {
    this.url = url
    this.root = files.get(url)
    this.version = versionOf(this.root)
    this.#files = files
    this.#problems = problems
  }

  get isSwagger(): boolean {
    return this.version.startsWith('2.')
  }

  /** The files besides the document itself. */
  get otherFiles(): readonly string[] {
    return [...this.#files.keys()].filter(url => url !== this.url)
  }

  at(value: unknown, base = this.url): LocatedPart {
    return { value, base }
  }

  /** The part itself, or what it refers to. Throws BrokenReference. */
  follow(part: LocatedPart, hops = 0): FollowedPart {
    const ref = textMember(part.value, '$ref')
    if (ref === undefined) return part
    if (hops > MOST_HOPS) throw new BrokenReference(`the reference ${quote(ref)} leads to itself`)
    const { id, ...found } = this.#find(ref, part.base, hops + 1)
    const target = this.follow(found, hops + 1)
    return { ...target, id: target.id ?? id }
  }

  #find(ref: string, base: string, hops: number): LocatedPart & { readonly id: string } {
    const target = URL.parse(ref, base)
    if (!target) throw new BrokenReference(`the reference ${quote(ref)} is not valid`)
    const pointer = decode(target.hash.slice(1))
    target.hash = ''
    const file = target.href
    const problem = this.#problems.get(file)
    if (problem !== undefined) throw new BrokenReference(`the reference ${quote(ref)} cannot be read: ${problem}`)
    let part: LocatedPart = { value: this.#files.get(file), base: file }
    for (const step of pointer === '' ? [] : pointer.split('/').slice(1)) {
      const { value, base } = this.follow(part, hops) // the way to a part may lead through references
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
      part = { value: Array.isArray(value) ? value[Number(key)] : memberOf(value, key), base }
    }
    if (part.value === undefined) throw new BrokenReference(`the reference ${quote(ref)} leads nowhere`)
    return { ...part, id: `${file}#${pointer}` }
  }
}

const quote = (text: string): string => JSON.stringify(text.slice(0, 200))

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Throws DocumentProblem for what is no OpenAPI document of a version that can be read. */
const versionOf = (root: unknown): string => {
  if (!isApiObject(root)) throw new DocumentProblem('names a document that is no OpenAPI document: it is no object')
  const version = memberOf(root, 'openapi') ?? memberOf(root, 'swagger')
  if (typeof version !== 'string' && typeof version !== 'number') {
    const hint = memberOf(root, 'asyncapi') === undefined ? '' : ' (it is an AsyncAPI document)'
    throw new DocumentProblem(
      `names a document that is no OpenAPI document: it has no member "openapi" or "swagger"${hint}`,
    )
  }
  const text = String(version)
  if (!/^(2\.0|2|3\.[0-2](\.|$))/.test(text))
    throw new DocumentProblem(`names a document of OpenAPI ${text.slice(0, 20)}; 2.0 and 3.0 to 3.2 can be read`)
  return text === '2' ? '2.0' : text
}

/** Parses a document, and reads the files that it refers to. Throws DocumentProblem. */
export const readApiDocument = async (text: string, url: string, readPart: ReadPart): Promise<ApiDocument> => {
  if (/^\s*</.test(text))
    throw new DocumentProblem('names a document that is a page (HTML or XML), no OpenAPI document')
  const problems = new Map<string, string>()
  const parser = new $RefParser()
  const read = async (file: { url: string }): Promise<string> => {
    if (file.url === url) return text
    try {
      return await readPart(file.url)
    } catch (error) {
      problems.set(file.url, error instanceof Error ? error.message : String(error))
      return 'null'
    }
  }
  try {
    await parser.resolve(url, {
      continueOnError: false,
      resolve: {
        external: OTHER_FILE.test(text),
        file: false,
        http: false,
        gateway: { order: 1, canRead: true, read },
      },
      parse: {
        json: false,
        text: false,
        binary: false,
        // JSON is YAML, too, but ten times slower to read as such.
        document: { order: 1, allowEmpty: true, canParse: /./, parse: parseJsonDocument },
        yaml: { canParse: /./ },
      },
    })
  } catch (error) {
    const reason = firstLineOf(error instanceof Error ? error.message : String(error))
    if (/is not a valid JSON Schema$/.test(reason)) return new ApiDocument(url, new Map(), problems) // which says why
    throw new DocumentProblem(`names a document that is neither JSON nor YAML: ${reason}`)
  }
  const files = new Map(Object.entries(parser.$refs.values() as Record<string, unknown>))
  for (const failed of problems.keys()) files.delete(failed)
  return new ApiDocument(url, files, problems)
}

const parseJsonDocument = (file: { data: unknown; url: string }): unknown => {
  const text = String(file.data).replace(/^\uFEFF/, '')
  if (!/^\s*[{[]/.test(text)) throw new SyntaxError('not JSON')
  return JSON.parse(text)
}

const SHOWN = 200

const firstLineOf = (message: string): string =>
  (message.split('\n')[0] ?? '').replace(/^Error parsing [^:]*:\/\/\S*:\s*/, '').slice(0, SHOWN)
