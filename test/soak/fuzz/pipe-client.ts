import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { LineDecoder } from '../../../src/wire/ndjson.ts'
import { Answers } from './expected.ts'
import type { Message } from './http.ts'

/** A client on the pipe of `dragoman stdio`, which runs in a process of its own. */
export interface PipeClient {
  readonly errors: readonly string[]
  /** Sends lines and waits for the answers to those that are requests; throws a Fault. */
  say(lines: readonly Buffer[], onQuestion: (message: Message) => readonly Buffer[]): Promise<void>
  close(): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('./pipe-process.ts', import.meta.url))
const NEWLINE = Buffer.from('\n')
const HELLO = { jsonrpc: '2.0', id: 'hello', method: 'ping' }

/** A line break inside would make two lines of it. */
const onOneLine = (line: Buffer): Buffer =>
  line.includes(NEWLINE) || line.includes('\r')
    ? Buffer.from(line.toString('latin1').replace(/[\r\n]/g, ' '), 'latin1')
    : line

/** Starts the process, and waits until it answers. */
export const startPipeClient = async (origin: string, workspace: string): Promise<PipeClient> => {
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, origin, workspace], { stdio: 'pipe' })
  const errors: string[] = []
  const talks = new Set<(message: Message) => void>()
  const lines = new LineDecoder(line => {
    try {
      const message = JSON.parse(line.toString()) as Message
      for (const take of talks) take(message)
    } catch {
      errors.push(`the pipe wrote a line that is no JSON: ${line.toString().slice(0, 200)}`)
    }
  })
  child.stdout.on('data', (chunk: Buffer) => lines.feed(chunk))
  child.stderr.on('data', (chunk: Buffer) => errors.push(`pipe: ${chunk}`))
  child.stdin.on('error', () => {})
  let isClosing = false
  child.on('exit', code => isClosing || errors.push(`the pipe ended with exit code ${code}`))

  const send = (line: Buffer): void => void child.stdin.write(Buffer.concat([onOneLine(line), NEWLINE]))

  await new Promise<void>(resolve => {
    const hello = ({ id }: Message): void => {
      if (id !== HELLO.id || !talks.delete(hello)) return
      resolve()
    }
    talks.add(hello)
    child.once('exit', () => resolve())
    send(Buffer.from(JSON.stringify(HELLO)))
  })
  return {
    errors,
    say: async (said, onQuestion) => {
      const answers = new Answers()
      const take = (message: Message): void => {
        if (message.method === undefined) answers.take(message)
        else for (const answer of onQuestion(message)) send(answer)
      }
      talks.add(take)
      for (const line of said) {
        answers.expect(onOneLine(line))
        send(line)
      }
      try {
        await answers.all(`pipe of ${workspace}`)
      } finally {
        talks.delete(take)
      }
    },
    close: async () => {
      isClosing = true
      const ended = new Promise(resolve => child.once('exit', resolve))
      child.stdin.end()
      if (child.exitCode === null) await ended
    },
  }
}
