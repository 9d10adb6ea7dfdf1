// A PostgreSQL for programs outside the tests: prints its URL, and ends with its standard input.
import { startPostgres } from './postgres.ts'

const server = await startPostgres()
process.stdin.resume().once('end', () => void server.stop().then(() => process.exit()))
process.stdout.write(`${server.url}\n`)
