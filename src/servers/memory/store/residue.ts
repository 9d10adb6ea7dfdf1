import { open } from 'node:fs/promises'
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

const scanFile = async (path: string, scan: (chunk: Buffer) => void): Promise<void> => {
  const file = await open(path, 'r').catch(() => undefined)
  if (!file) return
  const buffer = Buffer.alloc(CHUNK + LENGTH)
  try {
    for (let at = 0; ; at += CHUNK) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
      scan(buffer.subarray(0, bytesRead))
      if (bytesRead < buffer.length) return
      await yieldTurn() // A large file takes long; other calls are served meanwhile.
    }
  } finally {
    await file.close()
  }
}

/** The samples that occur as bytes in any of the files. */
export const findResidue = async (files: readonly string[], samples: readonly string[]): Promise<string[]> => {
  const { found, scan } = createScanner(samples)
  for (const file of files) await scanFile(file, scan)
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
