// The same server over stdin and stdout: one JSON-RPC message per line. `legacy` as the argument: 2025-11-25, else 2026-07-28.
import { answerTo, type Era } from './mcp-answers.ts'

const era: Era = process.argv[2] === 'legacy' ? 'legacy' : 'modern'
let rest = ''

process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop() ?? ''
  let answers = ''
  for (const line of lines) {
    const request = JSON.parse(line)
    if (request.id !== undefined) answers += `${answerTo(era, request).text}\n`
  }
  if (answers) process.stdout.write(answers)
})
