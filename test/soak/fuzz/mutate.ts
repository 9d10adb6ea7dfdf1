import type { Random } from './random.ts'

/** JSON text to be written as it is, for what no JavaScript value can say. */
class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Member = [name: string, value: Node]
type Node = Raw | string | number | boolean | null | Node[] | Members
/** An object whose members may have any name, also the same one twice. */
class Members {
  readonly list: Member[]
  constructor(list: Member[]) {
    this.list = list
  }
}

/** Names that every JavaScript object answers to. */
const HOSTILE = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', '', 'a\u0000b']
const NUMBERS = ['1e400', '-1e400', '-0', '1.5', '-1', '12345678901234567890', '9007199254740993', '0', '1e-7']

const read = (value: unknown): Node => {
  if (Array.isArray(value)) return value.map(read)
  if (value === null || typeof value !== 'object') return value as Node
  return new Members(
    Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .map(([name, inner]) => [name, read(inner)]),
  )
}

const write = (node: Node): string => {
  if (node instanceof Raw) return node.text
  if (Array.isArray(node)) return `[${node.map(write).join(',')}]`
  if (node instanceof Members)
    return `{${node.list.map(([name, value]) => `${JSON.stringify(name)}:${write(value)}`).join(',')}}`
  return JSON.stringify(node)
}

const odd = (random: Random): Node =>
  random.pick<() => Node>([
    () => null,
    () => true,
    () => false,
    () => [],
    () => [null],
    () => [[]],
    () => new Members([]),
    () => new Members([[random.pick(HOSTILE), new Members([[random.pick(HOSTILE), 1]])]]),
    () => random.pick(HOSTILE),
    () => new Raw(random.pick(NUMBERS)),
    () => 'x'.repeat(random.pick([300, 3000, 3000, 70_000, 70_000, 300_000])),
    () => new Raw(`${'['.repeat(400)}${']'.repeat(400)}`),
    () => new Raw(`${'{"a":'.repeat(300)}1${'}'.repeat(300)}`),
    () => new Raw(`${'['.repeat(600)}${']'.repeat(600)}`), // deeper than is read
    () => '\ud800 lone \u2028 é😀',
  ])()

/** Every object and array of a tree, the outer ones first. */
const containersOf = (node: Node, found: (Node[] | Members)[] = []): (Node[] | Members)[] => {
  if (Array.isArray(node)) {
    found.push(node)
    for (const element of node) containersOf(element, found)
  } else if (node instanceof Members) {
    found.push(node)
    for (const [, value] of node.list) containersOf(value, found)
  }
  return found
}

const damageArray = (list: Node[], random: Random): void => {
  const at = random.below(list.length + 1)
  if (random.chance(0.3)) list.splice(at, 1)
  else if (random.chance(0.5)) list.splice(at, 1, odd(random))
  else list.splice(at, 0, ...(random.chance(0.2) ? Array.from({ length: 50 }, () => odd(random)) : [odd(random)]))
}

const damageMembers = ({ list }: Members, random: Random): void => {
  const at = random.below(Math.max(1, list.length))
  const member = list[at]
  const operation = random.below(7)
  if (!member || operation === 0) list.push([random.pick(HOSTILE), odd(random)])
  else if (operation === 1) list.splice(at, 1)
  else if (operation === 2) list.push([member[0], odd(random)])
  else if (operation === 3) member[0] = random.pick(HOSTILE)
  else if (operation === 4) list.reverse()
  else member[1] = odd(random)
}

/** Damages the bytes of a text: no longer UTF-8, cut short, or with something in between. */
const damageBytes = (bytes: Buffer, random: Random): Buffer => {
  const at = random.below(bytes.length + 1)
  const between = random.pick([
    [0xff],
    [0xc3],
    [0xed, 0xa0, 0x80],
    [0],
    [0x0a],
    [0x0d, 0x0a],
    [0xef, 0xbb, 0xbf],
    [0x7b],
  ])
  return random.chance(0.4)
    ? bytes.subarray(0, at)
    : Buffer.concat([bytes.subarray(0, at), Buffer.from(between), bytes.subarray(at + random.below(3))])
}

/** The text of a message; with some damage if `isDamaged`. */
export const writeMessage = (message: unknown, random: Random, isDamaged: boolean): Buffer => {
  const tree = read(message)
  if (!isDamaged) return Buffer.from(write(tree))
  if (random.chance(0.03)) return Buffer.from(write(odd(random)))
  const count = 1 + (random.chance(0.3) ? random.below(4) : 0)
  for (let i = 0; i < count; i++) {
    const containers = containersOf(tree)
    if (containers.length === 0) break
    // Deep inside as often as near the root: half of the time a container of the inner half is taken.
    const container =
      containers[random.chance(0.5) ? random.below(containers.length) : Math.floor(containers.length / 2)]
    if (Array.isArray(container)) damageArray(container, random)
    else if (container) damageMembers(container, random)
  }
  const bytes = Buffer.from(write(tree))
  return random.chance(0.1) ? damageBytes(bytes, random) : bytes
}

/** Headers with one of them dropped, doubled, or with another value. */
export const damageHeaders = (headers: Readonly<Record<string, string>>, random: Random): Record<string, string> => {
  const list = Object.entries(headers)
  const at = random.below(Math.max(1, list.length))
  const member = list[at]
  const value = random.pick(['', ' ', 'x'.repeat(4000), '=?base64?!!!?=', '*/*;q=0', '2025-13-99', '../..', 'é', '"'])
  if (!member || random.chance(0.3))
    list.push([random.pick(['last-event-id', 'mcp-session-id', 'mcp-param-x', 'mcp-name', 'traceparent']), value])
  else if (random.chance(0.4)) list.splice(at, 1)
  else member[1] = value
  return Object.fromEntries(list.map(([name, text]) => [name, Buffer.from(text).toString('latin1')]))
}
