import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as yieldTurn } from 'node:timers/promises'

const LENGTH = 12 // bytes of a sample: too long to occur by chance, short enough to lie within one page
const MOST_SAMPLES = 20_000
const CHUNK = 1 << 20
const LONG_WORD = /[a-z0-9]{12,}/g

/** Samples of texts, all of one length, by which the texts are recognised in a file. */
export const samplesOf = (texts: Iterable<string>): string[] => {
  const samples = new Set<string>()
  for (const text of texts) {
    const bytes = Buffer.from(text)
    // The middle as well as the edges: a text may have been cut anywhere.
    const places = [0, Math.floor((bytes.length - LENGTH) / 2), bytes.length - LENGTH]
    if (bytes.length >= LENGTH) for (const at of places) samples.add(bytes.subarray(at, at + LENGTH).toString('latin1'))
    // The index contains single words in lower case.
    for (const [word] of text.toLowerCase().matchAll(LONG_WORD)) samples.add(word.slice(0, LENGTH))
    if (samples.size >= MOST_SAMPLES) break
  }
  return [...samples]
}

/** Collects the samples that occur in the chunks given to `scan`. */
const createScanner = (samples: readonly string[]) => {
  const [wanted, found, firstBytes] = [new Set(samples), new Set<string>(), new Uint8Array(65_536)]
  for (const sample of samples) firstBytes[sample.charCodeAt(0) | (sample.charCodeAt(1) << 8)] = 1
  const scan = (chunk: Buffer): void => {
    for (let at = 0; at + LENGTH <= chunk.length; at++) {
      if (firstBytes[(chunk[at] ?? 0) | ((chunk[at + 1] ?? 0) << 8)] === 0) continue
      const piece = chunk.toString('latin1', at, at + LENGTH)
      if (wanted.has(piece)) found.add(piece)
    }
  }
  return { found, scan }
}

const READ_FILES = `
const { createReadStream, existsSync } = require('node:fs')
const { pipeline } = require('node:stream/promises')
const run = async () => {
  for (const path of process.argv.slice(1).filter(existsSync)) {
    await pipeline(createReadStream(path, { highWaterMark: ${CHUNK} }), process.stdout, { end: false })
    process.stdout.write(Buffer.alloc(${LENGTH})) // No sample begins in one file and ends in the next.
  }
}
run().catch(error => {
  console.error(error.message)
  process.exitCode = 1
})
`

/**
 * The samples that occur as bytes in any of the files. A child process reads them: if this process closed a file that
 * SQLite has open, it would lose all its POSIX locks on it, and other processes would damage the database.
 */
export const findResidue = async (files: readonly string[], samples: readonly string[]): Promise<string[]> => {
  const { found, scan } = createScanner(samples)
  const child = spawn(process.execPath, ['-e', READ_FILES, '--', ...files], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close') as Promise<[number | null]>
  ended.catch(() => undefined) // If there is no child process, the error is thrown below.
  let failure = ''
  child.stderr.on('data', chunk => (failure += String(chunk)))
  let end = Buffer.alloc(0) // of the chunk before
  for await (const chunk of child.stdout) {
    const joined = Buffer.concat([end, chunk as Buffer])
    scan(joined)
    end = joined.subarray(Math.max(0, joined.length - LENGTH + 1))
  }
  const [code] = await ended
  if (code !== 0) throw new Error(`The files could not be searched for what was erased: ${failure.trim()}`)
  return [...found]
}

/** The samples that occur in none of the texts, neither as written nor in lower case. */
export const notIn = async (pages: AsyncIterable<readonly string[]>, samples: readonly string[]): Promise<string[]> => {
  const { found, scan } = createScanner(samples)
  for await (const page of pages) {
    if (found.size === samples.length) break
    for (const text of page) for (const form of [text, text.toLowerCase()]) scan(Buffer.from(form))
    await yieldTurn()
  }
  return samples.filter(sample => !found.has(sample))
}
