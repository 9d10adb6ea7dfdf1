import type { MemoryGraph } from '../../../../protocol/memory-views.ts'

/** Finds the neighbours of a node without reading all links each time. */
export const createLinkIndex = ({ links }: Pick<MemoryGraph, 'links'>) => {
  const neighbours = new Map<number, Set<number>>()
  const join = (from: number, to: number): void => {
    const known = neighbours.get(from) ?? new Set()
    neighbours.set(from, known.add(to))
  }
  for (const { source, target } of links) {
    join(source, target)
    join(target, source)
  }
  return { neighboursOf: (node: number): ReadonlySet<number> => neighbours.get(node) ?? new Set() }
}

/** The nodes of a community whose names contain every word of a query; undefined if neither is given. */
export const foundNodes = (
  { nodes }: { readonly nodes: readonly { readonly name: string; readonly community?: number | undefined }[] },
  query: string,
  community?: number,
): ReadonlySet<number> | undefined => {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word !== '')
  if (words.length === 0 && community === undefined) return undefined
  const isFound = (node: (typeof nodes)[number]): boolean => {
    const text = node.name.toLowerCase()
    return (community === undefined || node.community === community) && words.every(word => text.includes(word))
  }
  return new Set(nodes.flatMap((node, at) => (isFound(node) ? [at] : [])))
}
