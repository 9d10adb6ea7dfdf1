/**
 * A line in three parts: what it begins with as the other one does, what differs, what both end with. A comma at the end belongs to
 * the list around a value, so it is no difference.
 */
export const differingPart = (text: string, other: string): readonly [string, string, string] => {
  const isListed = text.endsWith(',') !== other.endsWith(',')
  const [own, its] = isListed ? [withoutComma(text), withoutComma(other)] : [text, other]
  const most = Math.min(own.length, its.length)
  let start = 0
  while (start < most && own[start] === its[start]) start++
  let end = 0
  while (end < most - start && own.at(-1 - end) === its.at(-1 - end)) end++
  return [own.slice(0, start), own.slice(start, own.length - end), text.slice(own.length - end)]
}

const withoutComma = (line: string): string => (line.endsWith(',') ? line.slice(0, -1) : line)
