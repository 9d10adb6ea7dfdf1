import { open } from 'node:fs/promises'
import { setImmediate as breathe } from 'node:timers/promises'

const LENGTH = 12 // bytes of a sample: long enough not to occur by chance, short enough to lie within one page
const MOST_SAMPLES = 20_000
const CHUNK = 1 << 20
const LONG_WORD = /[a-z0-9]{12,}/g

/** Pieces of texts, all of one length, by which the texts would be recognised in a file. */
export const samplesOf = (texts: Iterable<string>): string[] => {
  const samples = new Set<string>()
  for (const text of texts) {
    const bytes = Buffer.from(text)
    // The middle as well as the edges: a text may have been cut anywhere.
    const places = [0, Math.floor((bytes.length - LENGTH) / 2), bytes.length - LENGTH]
    if (bytes.length >= LENGTH) for (const at of places) samples.add(bytes.subarray(at, at + LENGTH).toString('latin1'))
    // The index keeps single words, in small letters.
    for (const [word] of text.toLowerCase().matchAll(LONG_WORD)) samples.add(word.slice(0, LENGTH))
    if (samples.size >= MOST_SAMPLES) break
  }
  return [...samples]
}

const firstBytes = (sample: string): number => sample.charCodeAt(0) | (sample.charCodeAt(1) << 8)

const scan = (chunk: Buffer, beginnings: Uint8Array, samples: ReadonlySet<string>, found: Set<string>): void => {
  for (let at = 0; at + LENGTH <= chunk.length; at++) {
    if (beginnings[(chunk[at] ?? 0) | ((chunk[at + 1] ?? 0) << 8)] === 0) continue
    const piece = chunk.toString('latin1', at, at + LENGTH)
    if (samples.has(piece)) found.add(piece)
  }
}

const scanFile = async (path: string, beginnings: Uint8Array, samples: ReadonlySet<string>, found: Set<string>) => {
  const file = await open(path, 'r').catch(() => undefined)
  if (!file) return
  const buffer = Buffer.alloc(CHUNK + LENGTH)
  try {
    for (let at = 0; ; at += CHUNK) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
      scan(buffer.subarray(0, bytesRead), beginnings, samples, found)
      if (bytesRead < buffer.length) return
      await breathe() // A large file takes a while, and others want to be served.
    }
  } finally {
    await file.close()
  }
}

const beginningsOf = (samples: readonly string[]): Uint8Array => {
  const beginnings = new Uint8Array(65_536)
  for (const sample of samples) beginnings[firstBytes(sample)] = 1
  return beginnings
}

/** Which of the samples are in any of the files, looked for as bytes. */
export const findResidue = async (files: readonly string[], samples: readonly string[]): Promise<string[]> => {
  const [beginnings, wanted, found] = [beginningsOf(samples), new Set(samples), new Set<string>()]
  for (const file of files) await scanFile(file, beginnings, wanted, found)
  return [...found]
}

/** Which of the samples are in none of the texts; texts come in pages, and are read as written and in small letters. */
export const notIn = async (pages: Iterable<readonly string[]>, samples: readonly string[]): Promise<string[]> => {
  const [beginnings, wanted, found] = [beginningsOf(samples), new Set(samples), new Set<string>()]
  for (const page of pages) {
    if (found.size === wanted.size) break
    for (const text of page)
      for (const form of [text, text.toLowerCase()]) scan(Buffer.from(form), beginnings, wanted, found)
    await breathe()
  }
  return samples.filter(sample => !found.has(sample))
}
