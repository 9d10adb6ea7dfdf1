import { createHash, hash } from 'node:crypto'
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

const DIGEST_BYTES = 32
const OTHERS_MAY_WRITE = 0o022

/**
 * The file that keeps compiled code: in the user's own cache folder, because who can write to it can run code as this user.
 * `program`: the path of the program; `use`: what it is used for, because each use compiles other functions.
 */
export const compiledCodeFile = (program: string, use: string): string => {
  const name = `${use}-${hash('sha256', program).slice(0, 12)}.bin`
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dragoman', 'compiled', name)
}

/** The digest also covers what the code belongs to: V8 itself compares only the length of the source. */
const digestOf = (build: string, code: Buffer): Buffer =>
  createHash('sha256').update(`${build} ${process.version} ${process.arch}\n`).update(code).digest()

/** Undefined if there is none, if it is damaged or of another build or Node.js, or if another user may have written it. */
export const readCompiledCode = (file: string, build: string): Buffer | undefined => {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, 'r')
    const { uid, mode } = fstatSync(descriptor)
    const isForeign = process.getuid !== undefined && (uid !== process.getuid() || (mode & OTHERS_MAY_WRITE) !== 0)
    if (isForeign) return undefined
    const bytes = readFileSync(descriptor)
    const code = bytes.subarray(DIGEST_BYTES)
    return digestOf(build, code).equals(bytes.subarray(0, DIGEST_BYTES)) ? code : undefined
  } catch {
    return undefined
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** Another process may read the file meanwhile, or write it, too. Without a place to write to, the next start compiles again. */
export const writeCompiledCode = (file: string, build: string, code: Buffer): void => {
  const unfinished = `${file}.${process.pid}-${process.hrtime.bigint()}`
  const isWritten = succeeds(() => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(unfinished, Buffer.concat([digestOf(build, code), code]), { mode: 0o600 })
    renameSync(unfinished, file)
  })
  if (!isWritten) succeeds(() => rmSync(unfinished, { force: true }))
}

const succeeds = (work: () => void): boolean => {
  try {
    work()
    return true
  } catch {
    return false
  }
}
