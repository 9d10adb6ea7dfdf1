import { programOnPath } from '../peer-programs.ts'
import { programPeer } from '../start-program.ts'

// The ports of its admin API, metrics and health checks would be fixed ones: 0 is any free port.
const config = (upstream: string, port: number): string =>
  JSON.stringify({
    config: { adminAddr: '127.0.0.1:0', statsAddr: '127.0.0.1:0', readinessAddr: '127.0.0.1:0' },
    mcp: { port, targets: [{ name: 'upstream', mcp: { host: upstream } }] },
  })

export const peer = programPeer({
  about: 'agentgateway (Rust): 2025-11-25 sessions, the HTTP upstream',
  dialect: 'legacy',
  program: programOnPath('agentgateway', 'set AGENTGATEWAY to its path', process.env.AGENTGATEWAY),
  args: ({ upstream, port, config: write }) => ['-f', write(config(upstream, port))],
})
