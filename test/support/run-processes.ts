import { readdirSync, readFileSync } from 'node:fs'

/** The processes whose environment holds that text. */
export const livingWith = (text: string): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && environmentOf(name).includes(text))
    .map(Number)

const environmentOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}
