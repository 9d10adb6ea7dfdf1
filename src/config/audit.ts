import { join, resolve } from 'node:path'
import * as z from 'zod'
import { fillInSection } from './fill-in-section.ts'
import { ConfigError, type ConfigReport } from './problems.ts'
import { readWith } from './read-with.ts'
import { flagSchema, object, oneOfSchema, textSchema, wholeNumber } from './schema-parts.ts'
import type { Environment } from './variables.ts'

/** Where the audit log is written, and what it contains. */
export interface AuditConfig {
  readonly to: 'file' | 'stdout'
  readonly file?: string | undefined // undefined: in the data directory
  readonly maxBytes: number // of one file
  readonly files: number // that are kept, the current one too
  readonly arguments: boolean
  readonly results: boolean
}

const MIB = 1024 * 1024
const DEFAULT_FILE = 'audit.jsonl'
const EXPECTED = 'expected true, false or an object'

const settings = object({
  to: oneOfSchema(['file', 'stdout']).default('file').describe('Write to a file, or to stdout.'),
  file: textSchema
    .min(1, { error: 'expected a file' })
    .optional()
    .describe('The file, relative to this one; audit.jsonl in the data directory when absent.'),
  maxBytes: wholeNumber(64 * 1024)
    .default(100 * MIB)
    .describe('Bytes after which the file becomes <file>.1 and a new one is begun.'),
  files: wholeNumber(1, 1000).default(10).describe('How many files are kept, the current one too.'),
  arguments: flagSchema.default(false).describe('Whether the arguments of tools and prompts are written, too.'),
  results: flagSchema.default(false).describe('Whether results are written, too.'),
})

/** `audit`: the log of who called what. */
export const auditSchema = z
  .union([flagSchema, settings], { error: EXPECTED })
  .describe('The audit log: who called what, and how it ended. Off when absent; true: a file in the data directory.')

/** The section `audit` with its variables filled in; undefined if it is off. */
export const readAudit = (raw: unknown, env: Environment, report: ConfigReport): AuditConfig | undefined => {
  if (raw === undefined || raw === false) return undefined
  if (raw !== true && typeof raw !== 'object') {
    report.problems.push({ path: ['audit'], message: EXPECTED })
    return undefined
  }
  const filled = fillInSection(raw === true ? {} : raw, env, ['audit'], report)
  const read = readWith(settings, filled, ['audit'], report)
  if (read?.to === 'stdout' && read.file !== undefined)
    report.problems.push({ path: ['audit', 'file'], message: 'has no effect, because "to" is "stdout"; remove one' })
  return read
}

/** A relative file counts from the folder of the configuration. */
export const locateAudit = (audit: AuditConfig | undefined, folder: string): AuditConfig | undefined =>
  audit?.file === undefined ? audit : { ...audit, file: resolve(folder, audit.file) }

/** The file of the audit log. */
export const auditFile = ({ file }: AuditConfig, data: string | undefined): string => {
  if (file !== undefined) return file
  if (data !== undefined) return join(data, DEFAULT_FILE)
  throw new ConfigError('"audit" needs a file: name one as "audit": { "file": PATH }, or give a data directory')
}
