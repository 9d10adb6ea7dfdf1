import { useMemo } from 'preact/hooks'

export interface SparklineProps {
  readonly values: readonly (number | null)[] // oldest first; null: nothing was measured
  readonly label: string // what is measured
  readonly format: (value: number) => string // with its unit
  readonly tone?: 'accent' | 'error'
  readonly width?: number
  readonly height?: number
  readonly max?: number | undefined // the top of the scale; default: the greatest value
}

const INSET = 1.5

/** A small chart without axes. Its name says the last and the greatest value. */
export const Sparkline = (props: SparklineProps) => {
  const { values, label, format, tone = 'accent', width = 96, height = 20, max } = props
  const path = useMemo(() => drawing(values, width, height, max), [values, width, height, max])
  const measured = values.filter(value => value !== null)
  const last = measured.at(-1)
  const name =
    last === undefined
      ? `${label}: nothing measured`
      : `${label}: ${format(last)}, at most ${format(Math.max(...measured))}`
  return (
    <svg
      class={`sparkline sparkline-${tone}`}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={name}
    >
      <title>{name}</title>
      <path class="sparkline-base" d={`M0 ${height - 0.5}H${width}`} />
      <path d={path} />
    </svg>
  )
}

/** A line through neighbours; a value that stands alone is a bar, because a dot would not be seen. */
const drawing = (values: SparklineProps['values'], width: number, height: number, max: number | undefined): string => {
  const top = max ?? values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0)
  const step = values.length > 1 ? (width - 2 * INSET) / (values.length - 1) : 0
  const at = (index: number, value: number): string => {
    const share = top > 0 ? Math.min(1, value / top) : 0
    return `${(INSET + index * step).toFixed(1)} ${(height - INSET - share * (height - 2 * INSET)).toFixed(1)}`
  }
  let isJoined = false
  return values
    .map((value, index) => {
      if (value === null) {
        isJoined = false
        return ''
      }
      const isAlone = !isJoined && (values[index + 1] ?? null) === null
      const command = isJoined ? 'L' : 'M'
      isJoined = true
      return `${command}${at(index, value)}${isAlone ? `V${height - INSET}` : ''}`
    })
    .join('')
}
