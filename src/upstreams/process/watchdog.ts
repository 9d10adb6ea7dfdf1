/**
 * The guardian's program, as text, so that a plain Node runs it without a file of its own. It reads `+pid` and
 * `-pid` lines until its input ends, which happens however the gateway ends. Then it gives everybody left a second
 * to leave by themselves, a second after SIGTERM, and ends the rest: groups it was told of, and what carries the mark.
 */
export const WATCHDOG = `
process.title = 'dragoman-guardian'
const { readdirSync, readFileSync } = require('node:fs')
const { spawnSync } = require('node:child_process')
const [mark] = process.argv.slice(1)
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
  return state !== 'Z' && (pids.has(Number(group)) || read('/proc/' + pid + '/environ').includes(mark))
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

async function areGone(ms, signal) {
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
  process.exit((await areGone(1000)) || (await areGone(1000, 'SIGTERM')) || (await areGone(2000, 'SIGKILL')) ? 0 : 1)
}
`
