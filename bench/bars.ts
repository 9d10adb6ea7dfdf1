import type { Results } from './results.ts'
import type { ScenarioName } from './scenarios.ts'

/** A promise about the CPU one contestant needs per call, as a multiple of another's. */
export interface Bar {
  readonly what: string
  readonly scenario: ScenarioName
  readonly of: string
  readonly to: string
  readonly atMost?: number
  readonly atLeast?: number
}

export const BARS: readonly Bar[] = [
  { what: 'echo: dragoman ÷ bytes-proxy', scenario: 'echo', of: 'dragoman', to: 'bytes-proxy', atMost: 1.15 },
  { what: 'big: dragoman ÷ bytes-proxy', scenario: 'big', of: 'dragoman', to: 'bytes-proxy', atMost: 1.3 },
  { what: 'echo: sdk-v2-proxy ÷ dragoman', scenario: 'echo', of: 'sdk-v2-proxy', to: 'dragoman', atLeast: 10 },
  { what: 'echo: dragoman-cross ÷ dragoman', scenario: 'echo', of: 'dragoman-cross', to: 'dragoman', atMost: 1.15 },
  { what: 'echo: dragoman-stdio ÷ dragoman', scenario: 'echo', of: 'dragoman-stdio', to: 'dragoman', atMost: 1.5 },
]

/** The bar's ratio in each round, both sides timed within the same minute. */
export const ratios = (results: Results, bar: Bar, connections: number): number[] => {
  const cpu = (contestant: string): Map<number, number> =>
    new Map(
      results.cells
        .filter(
          cell => cell.contestant === contestant && cell.scenario === bar.scenario && cell.connections === connections,
        )
        .map(cell => [cell.round, cell.cpuMicrosPerCall]),
    )
  const base = cpu(bar.to)
  return [...cpu(bar.of)].flatMap(([round, value]) => {
    const divisor = base.get(round)
    return divisor === undefined ? [] : [value / divisor]
  })
}
