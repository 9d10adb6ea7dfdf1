import { createHash } from 'node:crypto'

const LONGEST = 64 // the limit of most clients and models
const HASH_LENGTH = 8

interface NamedOperation {
  readonly method: string
  readonly path: string
  readonly id: string | undefined // its operationId
}

/**
 * The names of tools, in the order of the operations: the operationId, else method and path. A name depends on its own operation
 * only, unless it is too long or several operations would share it: then each of them ends in a hash of its method and path.
 */
export const nameTools = (operations: readonly NamedOperation[]): readonly string[] => {
  const plain = operations.map(({ method, path, id }) => {
    const name = safeName(id ?? '') || safeName(method.toLowerCase() + path)
    return name === '' ? method.toLowerCase() : name
  })
  const counts = new Map<string, number>()
  for (const name of plain.map(lower)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return operations.map((operation, at) => {
    const name = plain[at] ?? ''
    const isAlone = counts.get(lower(name)) === 1
    return isAlone && name.length <= LONGEST ? name : withHash(name, operation)
  })
}

/** Names that differ in case only are the same to some clients. */
const lower = (name: string): string => name.toLowerCase()

const withHash = (name: string, { method, path, id }: NamedOperation): string => {
  const hash = createHash('sha256')
    .update(`${method} ${path} ${id ?? ''}`)
    .digest('hex')
    .slice(0, HASH_LENGTH)
  return `${name.slice(0, LONGEST - HASH_LENGTH - 1).replace(/[_.-]+$/, '')}_${hash}`
}

const safeName = (text: string): string => text.replace(/[^A-Za-z0-9_-]+/g, '_').replace(/^_+|_+$/g, '')

/** Gives arguments names that models accept, each a different one. */
export class ArgumentNames {
  readonly #taken = new Set<string>()

  /** `hint` tells two arguments of the same name apart. */
  take(name: string, hint: string): string {
    const plain = name.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/^_+|_+$/g, '') || hint
    const short = plain.slice(0, LONGEST)
    let free = short
    for (let count = 1; this.#taken.has(free); count++)
      free = `${short.slice(0, LONGEST - 12)}_${hint}${count > 1 ? count : ''}`
    this.#taken.add(free)
    return free
  }
}
