import { open, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises' // keeps the command alive while it waits, unlike `sleep` of std
import * as z from 'zod'
import { ConfigError } from '../config/problems.ts'
import { replaceFile } from '../config/replace-file.ts'
import type { Token } from './token.ts'

const VERSION = 1

const time = z.iso.datetime({ error: 'expected a date and time like "2030-01-31T12:00:00Z"' })

const tokenSchema = z.looseObject({
  id: z.string().min(1),
  name: z.string(),
  hash: z.string().regex(/^[0-9a-f]{64}$/, { error: 'expected a SHA-256 in hex' }),
  principal: z.string().min(1),
  workspaces: z.array(z.string().min(1)),
  policy: z.string().min(1).optional(),
  admin: z.boolean().optional(),
  created: time,
  expires: time.optional(),
})

const fileSchema = z.looseObject(
  {
    version: z.literal(VERSION, { error: 'written by another version of dragoman' }),
    tokens: z.array(tokenSchema),
  },
  { error: 'expected a JSON object' },
)

export const TOKEN_FILE = 'tokens.json'

export const tokenFilePath = (directory: string): string => join(directory, TOKEN_FILE)

/** The tokens in the file; undefined if there is no file. Throws a ConfigError, without the content, if it is invalid. */
export const readTokens = async (file: string): Promise<readonly Token[] | undefined> => {
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined
    throw new ConfigError(`cannot read ${file}: ${cause.code ?? cause.message}`)
  })
  return text === undefined ? undefined : parseTokens(file, text)
}

/** Parses what `encodeTokens` wrote; `file` names it in the error. */
export const parseTokens = (file: string, text: string): readonly Token[] => {
  const checked = fileSchema.safeParse(parseJson(text))
  if (checked.success) return checked.data.tokens
  const [issue] = checked.error.issues
  const where = issue?.path.join('.')
  throw new ConfigError(
    `${file} is broken${where ? ` at ${where}` : ''}: ${issue?.message}; restore it, or remove it and create new tokens`,
  )
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // the parser's message would quote the text
  }
}

export const encodeTokens = (tokens: readonly Token[]): string =>
  `${JSON.stringify({ version: VERSION, tokens }, undefined, 2)}\n`

/** Changes the tokens under a lock, atomically for readers. */
export const changeTokens = async (
  file: string,
  change: (tokens: readonly Token[]) => readonly Token[],
): Promise<void> => {
  const unlock = await lock(`${file}.lock`)
  try {
    const tokens = change((await readTokens(file)) ?? [])
    await replaceFile(file, encodeTokens(tokens))
  } finally {
    await unlock()
  }
}

const LOCK_TRIES = 100
const LOCK_PAUSE_MS = 50
const LOCK_STALE_MS = 30_000

const lock = async (file: string): Promise<() => Promise<void>> => {
  for (let tries = 0; tries < LOCK_TRIES; tries++) {
    try {
      await (await open(file, 'wx', 0o600)).close()
      return () => rm(file, { force: true })
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    }
    const age = await stat(file).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    )
    if (age > LOCK_STALE_MS) await rm(file, { force: true })
    else await sleep(LOCK_PAUSE_MS)
  }
  throw new ConfigError(`another program is changing the tokens; if none is, remove ${file}`)
}
