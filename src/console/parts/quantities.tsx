import { signal, useComputed } from '@preact/signals'
import { formatAbsolute, formatBytes, formatDuration, formatRelative } from './format.ts'

let timer: ReturnType<typeof setInterval> | undefined

/** The time, to the second, while a part reads it. */
export const clock = signal(Date.now(), {
  watched() {
    this.value = Date.now()
    timer = setInterval(() => {
      this.value = Date.now()
    }, 1000)
  },
  unwatched() {
    clearInterval(timer)
  },
})

export interface TimeProps {
  readonly at: number | string // Unix time in milliseconds, or an ISO date
}

/** A time as it is seen from now, with the date in its title. */
export const Time = ({ at }: TimeProps) => {
  const time = typeof at === 'number' ? at : Date.parse(at)
  const text = useComputed(() => formatRelative(time, clock.value))
  if (Number.isNaN(time)) return <span>{at}</span>
  return (
    <time dateTime={new Date(time).toISOString()} title={formatAbsolute(time)}>
      {text}
    </time>
  )
}

/** A number of bytes in KiB, MiB …, with the whole number in its title. */
export const Bytes = ({ value }: { readonly value: number }) => (
  <span title={`${value.toLocaleString('en')} bytes`}>{formatBytes(value)}</span>
)

/** A time span in ms, s, min …, with the whole number in its title. */
export const Duration = ({ ms }: { readonly ms: number }) => (
  <span title={`${ms.toLocaleString('en')} ms`}>{formatDuration(ms)}</span>
)
