import { spawn } from 'node:child_process'
import { Json } from '../../wire/json/json.ts'
import { ClientError, EXIT } from './exit-codes.ts'

const SAMPLING_BYTES = 16 * 1024 * 1024 // of a reply

/** Runs the command of --sampling-command: the request on stdin as JSON, the reply on stdout as JSON or as text. */
export const runSampling = (command: string, params: Json): Promise<Json> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, stdio: ['pipe', 'pipe', 'inherit'] })
    const chunks: Buffer[] = []
    let size = 0
    const fail = (why: string): void => reject(new ClientError(`--sampling-command ${why}`, EXIT.usage))
    child.stdout.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > SAMPLING_BYTES) child.kill()
    })
    child.stdin.on('error', () => {}) // a command need not read the request
    child.on('error', error => fail(`could not be started: ${error.message}`))
    child.on('close', code => {
      if (code !== 0) return fail(`ended with code ${code ?? 'unknown'}: ${command}`)
      resolve(samplingResult(Buffer.concat(chunks)))
    })
    child.stdin.end(params.toBytes())
  })

/** A whole result passes as it is; anything else is the text of the reply. */
const samplingResult = (bytes: Buffer): Json => {
  try {
    const json = Json.parse(bytes)
    if (json.isObject && json.has('content')) {
      const typed = json.has('role') ? json : json.with('role', 'assistant')
      return typed.has('model') ? typed : typed.with('model', 'command')
    }
  } catch {
    // plain text
  }
  const text = bytes.toString('utf8').trim()
  return Json.of({ role: 'assistant', content: { type: 'text', text }, model: 'command', stopReason: 'endTurn' })
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Opens a URL in the user's browser ($BROWSER, else the platform's); false if no program could be started. */
export const openInBrowser = (url: string, env: NodeJS.ProcessEnv): Promise<boolean> =>
  new Promise(resolve => {
    const [file = 'xdg-open', ...args] = env.BROWSER ? [env.BROWSER] : (OPENERS[process.platform] ?? ['xdg-open'])
    const child = spawn(file, [...args, url], { stdio: 'ignore', detached: true, env })
    child.on('error', () => resolve(false))
    child.on('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
