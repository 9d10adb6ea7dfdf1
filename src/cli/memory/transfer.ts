import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import type { MemoryAdmin } from '../../servers/memory/memory-admin.ts'
import type { Groups } from '../../servers/memory/store.ts'
import { bytesText, createProgress, watchBackup } from '../progress.ts'
import { type Flags, print, printError, printJson, textOf, UsageError } from '../usage.ts'
import { type Action, countText, printableLine } from './action.ts'
import { oneGroup, ownerText } from './target.ts'

type ImportReport = Awaited<ReturnType<MemoryAdmin['importFrom']>>
type MemoryStats = Awaited<ReturnType<MemoryAdmin['stats']>>

const BUFFERED = 64 * 1024

/** Writes lines to a stream in chunks, and waits for it; `written` gets the number of lines. */
const createLineWriter = (out: Writable, written: (lines: number) => void) => {
  let [pending, size, lines] = ['', 0, 0]
  const flush = async (): Promise<void> => {
    const text = pending
    ;[pending, size] = ['', 0]
    await new Promise<void>((done, fail) => out.write(text, error => (error ? fail(error) : done())))
    written(lines)
  }
  const write = async (line: string): Promise<void> => {
    pending += `${line}\n`
    size += line.length
    lines++
    if (size >= BUFFERED) await flush()
  }
  return { write, flush, count: () => lines }
}

const linesIn = ({ groups: all }: MemoryStats, groups: Groups): number =>
  all
    .filter(({ group }) => groups === 'all' || groups.includes(group))
    .reduce((sum, { episodes, entities, facts }) => sum + episodes + entities + facts, 1)

const exportMemory: Action['run'] = async ({ words: [file = '-'], flags, groups, admin, target }) => {
  const total = linesIn(await admin.stats(), groups)
  const progress = createProgress({ what: 'exporting', total, shown: count => `${count} lines` })
  const out = file === '-' ? process.stdout : createWriteStream(`${file}.part`, { mode: 0o600 })
  out.on('error', () => {}) // the callback of the write reports it
  const lines = createLineWriter(out, progress.at)
  try {
    await admin.exportTo(groups, lines.write)
    await lines.flush()
  } catch (error) {
    if (file !== '-') await rm(`${file}.part`, { force: true })
    return writeError(error, file)
  } finally {
    progress.end()
  }
  if (file === '-') return 0
  out.end()
  await once(out, 'close')
  await rename(`${file}.part`, file)
  if (flags.json) return printJson({ file: resolve(file), lines: lines.count() })
  return print(
    `Exported ${countText(lines.count(), 'line')} of the memory of ${ownerText(target.tenant)} to ${file}.\n`,
  )
}

/** A reader that closed the pipe, like `head`, is not an error. */
const writeError = (error: unknown, file: string): number => {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EPIPE') return 0
  if (code === undefined) throw error
  return printError(`cannot write ${file}: ${message}`)
}

const IMPORT_FLAGS: Flags = {
  format: { value: 'FORMAT', help: 'dragoman, server-memory, graphiti, chat, markdown or text (detected)' },
}

const INTERRUPTED = 130

const importMemory: Action['run'] = async ({ words: [path = '-'], flags, groups, admin }) => {
  if (path === '-' && process.stdin.isTTY)
    throw new UsageError('expected a file or folder to import, or data on standard input')
  const found = path === '-' ? undefined : await stat(path).catch(() => undefined)
  const progress = createProgress(
    found?.isDirectory()
      ? { what: 'importing', shown: count => countText(count, 'file') }
      : { what: 'importing', total: found?.size, shown: bytesText },
  )
  const interruption = listenForInterrupt()
  try {
    const report = await admin.importFrom({
      source: path === '-' ? { stream: process.stdin } : { path },
      format: textOf(flags, 'format'),
      given: oneGroup(groups),
      progress: progress.at,
      signal: interruption.signal,
    })
    progress.end()
    const code = report.isInterrupted ? INTERRUPTED : report.faulty > 0 ? 1 : 0
    return flags.json ? printJson(report, code) : print(reportText(report), code)
  } finally {
    progress.end()
    interruption.stop()
  }
}

/** The first interrupt stops after the current item; the second ends the process as usual. */
const listenForInterrupt = () => {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  process.once('SIGINT', abort)
  return { signal: controller.signal, stop: () => void process.off('SIGINT', abort) }
}

const reportText = (report: ImportReport): string => {
  const { created, replaced, removed, same, entities, facts, passedOver, faults, faulty, isInterrupted } = report
  const parts = [
    countText(created, 'new episode'),
    ...(replaced > 0 ? [`${replaced} changed`] : []),
    ...(removed > 0 ? [`${removed} removed`] : []),
    ...(entities > 0 ? [countText(entities, 'entity', 'entities')] : []),
    ...(facts > 0 ? [countText(facts, 'fact')] : []),
    ...(same > 0 ? [same === 1 ? '1 as it was' : `${same} as they were`] : []),
    ...(passedOver > 0 ? [`${countText(passedOver, 'file')} passed over`] : []),
  ]
  const lines = [`Imported (${report.format}): ${parts.join(', ')}.`]
  if (faulty > 0) {
    lines.push(`${faulty} could not be imported:`)
    lines.push(...faults.map(({ where, why }) => printableLine(`  ${where}${where ? ': ' : ''}${why}`)))
    if (faulty > faults.length) lines.push(`  and ${faulty - faults.length} more`)
    lines.push('Everything else is kept. Correct these and import again: what is there already stays as it is.')
  }
  if (isInterrupted) lines.push('It was interrupted. Import again to go on: what is there already stays as it is.')
  return `${lines.join('\n')}\n`
}

const backup: Action['run'] = async ({ words: [file = ''], flags, admin, target }) => {
  if (!flags.yes && (await stat(file).catch(() => undefined)))
    throw new UsageError(`${file} is there already; name another file, or give --yes to replace it`)
  const { bytes } = await admin.stats()
  const watched = watchBackup(resolve(file), bytes)
  const done = await admin.backup(resolve(file)).finally(watched.end)
  if (flags.json) return printJson({ file: resolve(file), ...done })
  return print(`Backed up the memory of ${ownerText(target.tenant)} to ${file}, ${bytesText(done.bytes)}.\n`)
}

/** The actions that export, import and back up a memory. */
export const TRANSFER_ACTIONS: Readonly<Record<string, Action>> = {
  export: {
    usage: 'export [FILE]',
    summary: 'write all data as JSON lines to a file or standard output',
    flags: {},
    words: [0, 1],
    run: exportMemory,
  },
  import: {
    usage: 'import [PATH]',
    summary: 'read an export, another memory, a chat, or a folder of notes',
    flags: IMPORT_FLAGS,
    words: [0, 1],
    creates: true,
    run: importMemory,
  },
  backup: {
    usage: 'backup FILE',
    summary: 'write a copy; a gateway may be running',
    flags: { yes: { help: 'replace an existing file' } },
    words: [1, 1],
    isUngrouped: true,
    run: backup,
  },
}
