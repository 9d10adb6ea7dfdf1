import type { Members } from './members.ts'

/** A container with changes: its text, where its members lie in it, and what is to stand there instead. */
export interface ChangedContainer<Value extends Writable> {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  readonly members: Members
  readonly replacement: (i: number) => Value | 'keep' | 'remove'
  readonly added: readonly (readonly [string, Value])[]
}

interface Writable {
  appendTo(pieces: Buffer[]): void
}

const COMMA = Buffer.from(',')

/** Writes the text around the changes as it is, in runs as long as possible. */
export const appendChanged = <Value extends Writable>(pieces: Buffer[], changed: ChangedContainer<Value>): void => {
  const { bytes, start, end, members, replacement, added } = changed
  let from = start // what has not been written yet and is to be kept starts here; -1: nothing
  let keptEnd = start + 1 // and goes at least up to here
  let isEmpty = true

  const flush = (to: number) => {
    if (from >= 0 && to > from) pieces.push(bytes.subarray(from, to))
    from = -1
  }
  for (let i = 0; i < members.count; i++) {
    const value = members.isDropped(i) ? 'remove' : replacement(i)
    if (value === 'remove') {
      flush(keptEnd)
      continue
    }
    if (from < 0) {
      if (!isEmpty) pieces.push(COMMA)
      from = members.start(i)
    }
    isEmpty = false
    keptEnd = members.end(i)
    if (value === 'keep') continue
    flush(members.valueStart(i))
    value.appendTo(pieces)
    from = keptEnd
  }
  if (added.length === 0 && from >= 0) flush(end)
  else {
    flush(keptEnd)
    appendAdded(pieces, added, isEmpty)
    pieces.push(bytes.subarray(end - 1, end))
  }
}

const appendAdded = (pieces: Buffer[], added: ChangedContainer<Writable>['added'], isFirst: boolean): void => {
  let separator = isFirst ? '' : ','
  for (const [name, value] of added) {
    pieces.push(Buffer.from(`${separator}${JSON.stringify(name)}:`))
    value.appendTo(pieces)
    separator = ','
  }
}
