/** One line that can be chosen. */
export interface Choice {
  readonly label: string
  readonly note: string // shown after the label
  readonly weight: number // summed over what is chosen
}

/** A list of choices in a terminal. */
export interface ChoiceList {
  readonly choices: readonly Choice[]
  readonly chosen: ReadonlySet<number>
  readonly cursor: number // among those that the filter shows
  readonly filter: string
  readonly isFiltering: boolean // keys are typed into the filter
}

/** A key as readline names it. */
export interface PressedKey {
  readonly name?: string | undefined
  readonly ctrl?: boolean | undefined
  readonly text?: string | undefined // what it types
}

export type ChoiceStep = ChoiceList | 'done' | 'cancelled'

const PAGE = 10

/** The positions that the filter shows: every word of it must occur. */
export const shownChoices = ({ choices, filter }: ChoiceList): readonly number[] => {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  return choices.flatMap(({ label }, at) => (words.every(word => label.toLowerCase().includes(word)) ? at : []))
}

/** The list after a key. */
export const stepChoices = (list: ChoiceList, key: PressedKey): ChoiceStep => {
  if (key.ctrl && (key.name === 'c' || key.name === 'd')) return 'cancelled'
  if (list.isFiltering) return stepFilter(list, key)
  const shown = shownChoices(list)
  const move = (by: number): ChoiceList => ({
    ...list,
    cursor: Math.max(0, Math.min(shown.length - 1, list.cursor + by)),
  })
  const choose = (positions: readonly number[], isChosen: boolean): ChoiceList => {
    const chosen = new Set(list.chosen)
    for (const at of positions) isChosen ? chosen.add(at) : chosen.delete(at)
    return { ...list, chosen }
  }
  const current = shown[list.cursor]
  const KEYS: Readonly<Record<string, () => ChoiceStep>> = {
    up: () => move(-1),
    down: () => move(1),
    pageup: () => move(-PAGE),
    pagedown: () => move(PAGE),
    home: () => move(Number.NEGATIVE_INFINITY),
    end: () => move(shown.length),
    space: () => (current === undefined ? list : choose([current], !list.chosen.has(current))),
    a: () => choose(shown, true),
    n: () => choose(shown, false),
    return: () => 'done',
    enter: () => 'done',
    q: () => 'cancelled',
    escape: () => 'cancelled',
  }
  if (key.text === '/') return { ...list, isFiltering: true }
  return (Object.hasOwn(KEYS, key.name ?? '') ? KEYS[key.name ?? ''] : undefined)?.() ?? list
}

const stepFilter = (list: ChoiceList, { name, text = '' }: PressedKey): ChoiceStep => {
  if (name === 'return' || name === 'enter') return { ...list, isFiltering: false }
  if (name === 'escape') return { ...list, isFiltering: false, filter: '', cursor: 0 }
  if (name === 'backspace') return { ...list, filter: [...list.filter].slice(0, -1).join(''), cursor: 0 }
  return /^\P{C}+$/u.test(text) ? { ...list, filter: list.filter + text, cursor: 0 } : list
}

/** The lines that show the list, in a terminal of that size. */
export const drawChoices = (
  list: ChoiceList,
  title: (chosen: readonly Choice[]) => string,
  size: { readonly columns: number; readonly rows: number },
): readonly string[] => {
  const shown = shownChoices(list)
  const room = Math.max(3, size.rows - 4)
  const first = Math.max(0, Math.min(list.cursor - Math.floor(room / 2), shown.length - room))
  const chosen = list.choices.filter((_, at) => list.chosen.has(at))
  const lines = shown.slice(first, first + room).map((at, i) => {
    const { label, note } = list.choices[at] as Choice
    const mark = list.chosen.has(at) ? '[x]' : '[ ]'
    return `${first + i === list.cursor ? '>' : ' '} ${mark} ${label}  ${note}`
  })
  const filter = list.isFiltering || list.filter !== '' ? `  filter: ${list.filter}${list.isFiltering ? '_' : ''}` : ''
  const keys = list.isFiltering
    ? 'Enter: end the filter  Esc: clear it'
    : 'Space: choose  a: all  n: none  /: filter  Enter: save  q: leave'
  return [`${title(chosen)}${filter}`, ...(lines.length > 0 ? lines : ['  nothing fits']), keys].map(line =>
    line.length > size.columns ? `${line.slice(0, Math.max(1, size.columns - 1))}…` : line,
  )
}
