// What the suite starts for each scenario: hands it to the client host of the cell (client-host.ts), whose process has
// loaded everything already. What went wrong there is what this program says before it fails.
import { request } from 'node:http'

const [port, url] = process.argv.slice(2)
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env

const fail = words => {
  process.stderr.write(`${words}\n`)
  process.exitCode = 1
}

request({ host: '127.0.0.1', port, method: 'POST' }, response => {
  let words = ''
  response.setEncoding('utf8').on('data', text => {
    words += text
  })
  response.on('end', () => words && fail(words))
})
  .on('error', error => fail(`The client host does not answer: ${error.message}`))
  .end(JSON.stringify({ scenario, context: JSON.parse(context), url }))
