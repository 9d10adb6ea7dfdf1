// Reads the JSON reports of Vitest for .ci/run: `files <report>` prints the files with failures, `count <report> <second report>`
// what passed and failed, where the second report, if it exists, is of those files alone; it lists the failures on stderr.
import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

const [action, report, second] = process.argv.slice(2)

const read = path => JSON.parse(readFileSync(path, 'utf8')).testResults

/** The tests of a report that failed; a file that failed as a whole counts as one. */
const failuresOf = files =>
  files
    .filter(({ status }) => status === 'failed')
    .flatMap(({ name, message, assertionResults }) => {
      const file = relative(process.cwd(), name)
      const failed = assertionResults.filter(({ status }) => status === 'failed')
      if (failed.length === 0) return [{ key: file, text: message ?? '' }]
      return failed.map(test => ({ key: `${file} > ${test.fullName}`, text: test.failureMessages.join('\n') }))
    })

const print = (title, { key, text }) => console.error(`${title}: ${key}\n${text.split('\n').slice(0, 12).join('\n')}`)

const first = read(report)
const failures = failuresOf(first)
if (action === 'files') {
  for (const { name, status } of first) if (status === 'failed') console.log(relative(process.cwd(), name))
} else {
  const remaining = second !== undefined && existsSync(second) ? failuresOf(read(second)) : failures
  const isRemaining = new Set(remaining.map(({ key }) => key))
  for (const failure of remaining) print('FAILED', failure)
  const unstable = failures.filter(({ key }) => !isRemaining.has(key))
  for (const failure of unstable) print('UNSTABLE, passed alone', failure)
  const passed = first.flatMap(({ assertionResults }) => assertionResults).filter(({ status }) => status === 'passed')
  console.log(`${passed.length + unstable.length} passed, ${remaining.length} failed`)
}
