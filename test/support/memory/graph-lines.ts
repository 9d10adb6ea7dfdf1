const FIRST = [
  'Ada',
  'Bela',
  'Cleo',
  'Dora',
  'Emil',
  'Finn',
  'Gita',
  'Hugo',
  'Ines',
  'Juri',
  'Kira',
  'Lena',
  'Milo',
  'Nora',
]
const LAST = [
  'Arp',
  'Berg',
  'Cox',
  'Dahl',
  'Eder',
  'Falk',
  'Gran',
  'Holm',
  'Iwan',
  'Jahn',
  'Kern',
  'Lund',
  'Moor',
  'Nagy',
]
const RELATIONS = ['knows', 'works with', 'reports to', 'lives near', 'advises']
const CLUSTER = 40 // nodes that mostly know each other

/** Numbers that look random and are the same each time. */
const createNumbers = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

export const nameOfNode = (at: number): string =>
  `${FIRST[at % FIRST.length]} ${LAST[Math.floor(at / FIRST.length) % LAST.length]}${at >= FIRST.length * LAST.length ? ` ${Math.floor(at / (FIRST.length * LAST.length)) + 1}` : ''}`

/** A file of `server-memory` with a graph of that many entities in clusters, in which some know many others. */
export const graphLines = (count: number): string => {
  const next = createNumbers(count)
  const lines = Array.from({ length: count }, (_, at) =>
    JSON.stringify({ type: 'entity', name: nameOfNode(at), entityType: 'person', observations: [] }),
  )
  const relate = (from: number, to: number): void => {
    const relationType = RELATIONS[next(RELATIONS.length)]
    lines.push(JSON.stringify({ type: 'relation', from: nameOfNode(from), to: nameOfNode(to), relationType }))
  }
  for (let at = 1; at < count; at++) {
    const start = Math.floor(at / CLUSTER) * CLUSTER
    const within = at - start
    // The first ones of a cluster are known best: the smaller of two numbers is chosen.
    if (within > 0) for (let time = 0; time < 2; time++) relate(at, start + Math.min(next(within), next(within)))
    if (within === 0 || next(20) === 0) relate(at, next(at))
  }
  return lines.join('\n')
}
