// Loads the bundled program. It is bundled by itself, and its code is the only one that is compiled at each start.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { compiledCodeFile, readCompiledCode, writeCompiledCode } from './compiled-code.ts'

/** The hash of the program, which the bundler writes here. */
declare const BUILD: string

const PROGRAM = join(__dirname, 'program.js')
const KEEP_AFTER_MS = 5000 // by then a gateway has compiled what it starts with
const COMMAND = /^[a-z]+$/

type Entry = () => Promise<Readonly<Record<string, unknown>>>
type Wrapper = (exports: object, require: NodeRequire, module: object, file: string, folder: string) => void

/** What the program exports. With a `use`, what V8 compiles of it is kept for the next start. */
const loadProgram = (use?: string): Readonly<Record<string, Entry | undefined>> => {
  const file = use === undefined ? undefined : compiledCodeFile(PROGRAM, use)
  const cachedData = file === undefined ? undefined : readCompiledCode(file, BUILD)
  // The bundler writes ASCII only.
  const script = new Script(readFileSync(PROGRAM, 'latin1'), { filename: PROGRAM, ...(cachedData && { cachedData }) })
  if (file !== undefined && (!cachedData || script.cachedDataRejected)) keepCompiledCode(script, file)
  const module = { exports: {} as { entries: Record<string, Entry> } }
  const run = script.runInThisContext() as Wrapper
  run(module.exports, createRequire(PROGRAM), module, PROGRAM, dirname(PROGRAM))
  return module.exports.entries
}

/** Functions are compiled when they are first called, so what is kept is taken some time later, or at the end. */
const keepCompiledCode = (script: Script, file: string): void => {
  const keep = (): void => {
    clearTimeout(timer)
    process.off('exit', keepAtEnd)
    writeCompiledCode(file, BUILD, script.createCachedData())
  }
  // A word that is no command would get a file of its own.
  const keepAtEnd = (exitCode: number): void => (exitCode === 0 ? keep() : undefined)
  const timer = setTimeout(keep, KEEP_AFTER_MS).unref()
  process.once('exit', keepAtEnd)
}

const start = (name: string, use?: string): Promise<Readonly<Record<string, unknown>>> => {
  const entry = loadProgram(use)[name]
  if (!entry) throw new Error(`The program has no entry "${name}".`)
  return entry()
}

/** Runs the command of this process. */
export const runCommand = (): void => {
  // Before anything is compiled, because code compiled with other flags is not accepted.
  // With many pending calls V8 would allocate their objects in the old generation from then on: a fifth more CPU.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // By default V8 stops inlining early, in the middle of the loop that checks JSON: 8 % of the CPU of a call with 10 KB.
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000')
  const [, , command = ''] = process.argv
  void start('command', COMMAND.test(command) ? command : 'other')
}

/** Runs a thread of the program. */
export const runThread = (name: string): void => {
  void start(name, name)
}

/** What a program that embeds the gateway imports. */
export const loadExports = (): Promise<Readonly<Record<string, unknown>>> => start('exports')
