import * as z from 'zod'
import type { ConfigReport } from './problems.ts'
import { readWith } from './read-with.ts'
import { flagSchema, object, textList, wholeNumber } from './schema-parts.ts'

/** What the flight recorder keeps in memory. */
export interface RecorderConfig {
  readonly enabled: boolean // after a start; it can be switched while the gateway runs
  readonly maxBytes: number // of memory
  readonly maxMessageBytes: number // of one message
  readonly redact: readonly string[] // names of further members whose values are secrets
}

const KIB = 1024
const MIB = 1024 * KIB
const EXPECTED = 'expected true, false or an object'

const settings = object({
  enabled: flagSchema.default(true).describe('Whether exchanges are recorded after a start.'),
  maxBytes: wholeNumber(MIB, 4096 * MIB)
    .default(32 * MIB)
    .describe('Bytes of memory for all recordings; the oldest are forgotten first.'),
  maxMessageBytes: wholeNumber(KIB, 128 * KIB)
    .default(64 * KIB)
    .describe('Bytes that are kept of one message; of a larger one its start is kept.'),
  redact: textList
    .default([])
    .describe('Names of members whose values are never shown, besides password, token and the like.'),
})

/** `recorder`: the flight recorder of the console. */
export const recorderSchema = z
  .union([flagSchema, settings], { error: EXPECTED })
  .describe(
    'The flight recorder: the latest exchanges with all their messages, in memory, shown in the console. On when absent; false: off after a start.',
  )

/** The recorder without a section of the configuration. */
export const DEFAULT_RECORDER: RecorderConfig = settings.parse({})

/** The section `recorder`; undefined where it is absent or wrong. */
export const readRecorder = (raw: unknown, report: ConfigReport): RecorderConfig | undefined => {
  if (raw === undefined) return undefined
  if (typeof raw === 'boolean') return { ...DEFAULT_RECORDER, enabled: raw }
  if (raw === null || typeof raw !== 'object') {
    report.problems.push({ path: ['recorder'], message: EXPECTED })
    return undefined
  }
  return readWith(settings, raw, ['recorder'], report)
}
