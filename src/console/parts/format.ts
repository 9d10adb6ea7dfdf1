/** Texts for quantities: every number has its unit. */
const COUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const DATE = new Intl.DateTimeFormat('en-CA', { dateStyle: 'short' })

/** 1,234; above ten thousand 12.3k, as numbers of tokens are written. */
export const formatCount = (count: number): string => (count < 10_000 ? COUNT : COMPACT).format(count).replace('K', 'k')

/** `plural(2, 'tool')` is `2 tools`. */
export const plural = (count: number, noun: string, many = `${noun}s`): string =>
  `${formatCount(count)} ${count === 1 ? noun : many}`

/** A share from 0 to 1 as a percentage; small ones are not rounded to nothing. */
export const formatShare = (share: number): string => {
  const percent = share * 100
  if (percent === 0 || percent >= 10) return `${Math.round(percent)} %`
  return percent < 0.1 ? '<0.1 %' : `${percent.toFixed(1)} %`
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export const formatBytes = (bytes: number): string => {
  const power = Math.min(BYTE_UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  const value = bytes / 1024 ** power
  return `${power > 0 && value < 100 ? value.toFixed(1) : Math.round(value)} ${BYTE_UNITS[power]}`
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const two = (ms: number, large: number, small: number, names: readonly [string, string]): string => {
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)} ${names[0]}${rest > 0 ? ` ${rest} ${names[1]}` : ''}`
}

/** 0.4 ms, 12 ms, 1.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export const formatDuration = (ms: number): string => {
  if (ms < 10) return `${ms === 0 ? 0 : ms.toFixed(1)} ms`
  if (ms < SECOND) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${(ms / SECOND).toFixed(1)} s`
  if (ms < HOUR) return two(ms, MINUTE, SECOND, ['min', 's'])
  return ms < DAY ? two(ms, HOUR, MINUTE, ['h', 'min']) : two(ms, DAY, HOUR, ['d', 'h'])
}

const NOW_MS = 3 * SECOND
const DATED_MS = 30 * DAY
const STEPS = [
  [MINUTE, SECOND, 's'],
  [HOUR, MINUTE, 'min'],
  [DAY, HOUR, 'h'],
  [DATED_MS, DAY, 'd'],
] as const

/** 18 s, 2 min, 3 h, 40 d: a figure that is short and changes rarely. */
export const formatAge = (ms: number): string => {
  const [, unit, name] = STEPS.find(([below]) => ms < below) ?? STEPS[3]
  return `${formatCount(Math.floor(ms / unit))} ${name}`
}

/** 12 s ago, in 5 min; what is more than a month away is a date. */
export const formatRelative = (at: number, now: number): string => {
  const away = Math.abs(now - at)
  if (away < NOW_MS) return 'just now'
  const step = STEPS.find(([below]) => away < below)
  if (!step) return DATE.format(at)
  const text = `${Math.floor(away / step[1])} ${step[2]}`
  return at < now ? `${text} ago` : `in ${text}`
}

const ABSOLUTE = new Intl.DateTimeFormat('en-CA', {
  dateStyle: 'short',
  timeStyle: 'medium',
  hourCycle: 'h23',
})

/** The local date and time, to the second. */
export const formatAbsolute = (at: number): string => ABSOLUTE.format(at).replace(',', '')
