// A server process without a mind of its own: what it reads and writes is a socket of the test.
import { connect } from 'node:net'

const socket = connect(Number(process.argv[2]), '127.0.0.1')
if (process.argv[3]) socket.write(`${process.argv[3]}\n`) // tells the test which of its servers this is
process.stdin.pipe(socket)
socket.pipe(process.stdout)
for (const event of ['close', 'error']) socket.on(event, () => process.exit())
