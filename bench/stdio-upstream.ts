// The same server over stdin and stdout: one JSON-RPC message per line, 2026-07-28 only.
import { answerTo } from './mcp-answers.ts'

let rest = ''

process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop() ?? ''
  let answers = ''
  for (const line of lines) {
    const request = JSON.parse(line)
    if (request.id !== undefined) answers += `${answerTo('modern', request).text}\n`
  }
  if (answers) process.stdout.write(answers)
})
