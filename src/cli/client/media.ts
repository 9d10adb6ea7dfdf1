import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Terminal } from './terminal.ts'

/** Shows images in terminals that can, and saves the rest to files. */
export interface MediaOutput {
  /** The escape sequence that shows it; undefined if this terminal cannot. */
  show(bytes: Buffer, mimeType: string): string | undefined
  /** Writes a file and returns its path. */
  save(bytes: Buffer, mimeType: string): Promise<string>
}

const ENDINGS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/svg+xml': 'svg',
  'audio/wav': 'wav',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'application/pdf': 'pdf',
  'application/json': 'json',
  'text/plain': 'txt',
}

type Protocol = 'kitty' | 'iterm'

/** The image protocol that the terminal announces; undefined: none. */
const imageProtocol = (env: NodeJS.ProcessEnv): Protocol | undefined => {
  if (env.KITTY_WINDOW_ID || env.TERM === 'xterm-kitty' || env.TERM_PROGRAM === 'ghostty') return 'kitty'
  return env.TERM_PROGRAM === 'iTerm.app' || env.TERM_PROGRAM === 'WezTerm' ? 'iterm' : undefined
}

const KITTY_CHUNK = 4096 // bytes of base64 in one sequence, by the protocol

const kittyImage = (bytes: Buffer): string => {
  const data = bytes.toString('base64')
  const chunks = data.match(new RegExp(`.{1,${KITTY_CHUNK}}`, 'g')) ?? []
  return chunks
    .map((chunk, i) => {
      const more = i + 1 < chunks.length ? 1 : 0
      return `\u001b_G${i === 0 ? `a=T,f=100,m=${more}` : `m=${more}`};${chunk}\u001b\\`
    })
    .join('')
}

const itermImage = (bytes: Buffer): string =>
  `\u001b]1337;File=inline=1;size=${bytes.length}:${bytes.toString('base64')}\u0007`

/** Files go to `folder`, or to a new folder for temporary files. */
export const createMediaOutput = ({ output, env }: Terminal, folder: string | undefined): MediaOutput => {
  let made: Promise<string> | undefined
  let count = 0
  const makeFolder = async (): Promise<string> => {
    if (folder === undefined) return mkdtemp(join(tmpdir(), 'dragoman-'))
    await mkdir(folder, { recursive: true })
    return folder
  }
  return {
    show: (bytes, mimeType) => {
      const protocol = output.isTTY === true && folder === undefined ? imageProtocol(env) : undefined
      if (protocol === 'kitty' && mimeType === 'image/png') return kittyImage(bytes) // its only compressed format
      return protocol === 'iterm' && mimeType.startsWith('image/') ? itermImage(bytes) : undefined
    },
    save: async (bytes, mimeType) => {
      made ??= makeFolder()
      const kind = mimeType.split('/')[0] ?? ''
      const name = `${/^[a-z]+$/.test(kind) ? kind : 'data'}-${++count}.${ENDINGS[mimeType] ?? 'bin'}`
      const file = join(await made, name)
      await writeFile(file, bytes)
      return file
    },
  }
}
