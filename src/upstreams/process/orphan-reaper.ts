import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'

const RESTART_MS = 250

/** Ends the child processes that are left when the gateway is killed: a helper process outlives it for that. */
export class OrphanReaper {
  readonly #gatewayTag = randomBytes(8).toString('hex')
  readonly #tracked = new Set<number>()
  #helper: ChildProcess | undefined
  #children = 0

  /** A tag that no other child has, of this gateway or another. */
  newTag(): string {
    return `${this.#gatewayTag}.${++this.#children}.`
  }

  /** Starts the helper; called before the first child starts. */
  start(): void {
    this.#running()
  }

  /** Tracks the group of a process until the returned function is called. */
  track(pid: number): () => void {
    this.#tracked.add(pid)
    this.#send(`+${pid}\n`)
    return () => {
      if (this.#tracked.delete(pid)) this.#send(`-${pid}\n`)
    }
  }

  #send(line: string): void {
    this.#running().stdin?.write(line)
  }

  #running(): ChildProcess {
    if (this.#helper) return this.#helper
    const { PATH = '', SystemRoot = '' } = process.env
    const helper = spawn(process.execPath, ['-e', REAPER, '--', `${this.#gatewayTag}.`], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: process.platform === 'win32' ? { PATH, SystemRoot } : { PATH },
      detached: process.platform !== 'win32', // an interrupt from the terminal must not reach it
      windowsHide: true,
    })
    this.#helper = helper
    helper.on('error', () => {})
    helper.stdin?.on('error', () => {})
    helper.once('exit', () => {
      if (this.#helper === helper) this.#helper = undefined
      if (this.#tracked.size > 0) setTimeout(() => this.#restart(), RESTART_MS).unref()
    })
    helper.unref()
    ;(helper.stdin as Socket | null)?.unref()
    return helper
  }

  #restart(): void {
    for (const pid of this.#tracked) this.#send(`+${pid}\n`)
  }
}

/**
 * The helper's program, as text, so that a plain Node runs it without a file of its own. It reads `+pid` and `-pid` lines
 * until its input ends, however the gateway ends. Then the processes left (the groups it read, and those with the tag) have
 * a second to end by themselves and a second after SIGTERM, before SIGKILL.
 */
const REAPER = `
process.title = 'dragoman-reaper'
const { readdirSync, readFileSync } = require('node:fs')
const { spawnSync } = require('node:child_process')
const [tag] = process.argv.slice(1)
const pids = new Set()
let rest = ''

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
process.stdin.setEncoding('utf8')
process.stdin.on('data', text => {
  const lines = (rest + text).split('\\n')
  rest = lines.pop()
  for (const line of lines) pids[line[0] === '+' ? 'add' : 'delete'](Number(line.slice(1)))
})
process.stdin.on('error', () => {})
process.stdin.on('close', endAll)

function send(pid, signal) {
  try { return process.kill(pid, signal) } catch { return false }
}

function read(file) {
  try { return readFileSync(file, 'latin1') } catch { return '' }
}

function isOurs(pid) {
  const stat = read('/proc/' + pid + '/stat')
  const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return state !== 'Z' && (pids.has(Number(group)) || read('/proc/' + pid + '/environ').includes(tag))
}

function left() {
  if (process.platform === 'linux') return readdirSync('/proc').filter(name => /^[0-9]+$/.test(name)).filter(isOurs)
  const all = process.platform === 'win32' ? [...pids] : [...pids].map(pid => -pid)
  return all.filter(pid => send(pid, 0))
}

function end(pid, signal) {
  if (process.platform !== 'win32') return send(Number(pid), signal)
  spawnSync('taskkill', ['/pid', String(pid), '/t', '/f'], { windowsHide: true })
}

async function haveEnded(ms, signal) {
  for (const until = Date.now() + ms; Date.now() < until; ) {
    const some = left()
    if (some.length === 0) return true
    if (signal) for (const pid of some) end(pid, signal)
    if (signal === 'SIGTERM') signal = undefined
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  return false
}

async function endAll() {
  const isDone = (await haveEnded(1000)) || (await haveEnded(1000, 'SIGTERM')) || (await haveEnded(2000, 'SIGKILL'))
  process.exit(isDone ? 0 : 1)
}
`
