import { readMemory } from './memory.ts'
import type { ServerEntry } from './schema.ts'
import type { BuiltinServer, UnavailableServer } from './snapshot.ts'
import { type Environment, type Filled, fillIn } from './variables.ts'

/** Reads a server that comes with the gateway. */
export const readBuiltin = (
  builtin: NonNullable<ServerEntry['builtin']>,
  { root, showHidden, memory }: ServerEntry,
  env: Environment,
): BuiltinServer | UnavailableServer => {
  if (builtin === 'memory') return readMemory(memory, env)
  if (builtin !== 'files') return { kind: 'builtin', builtin }
  const filled: Filled = root === undefined ? { kind: 'text', text: process.cwd() } : fillIn(root, env)
  if (filled.kind === 'missing') return { kind: 'unavailable', reason: `root: ${filled.reason}` }
  return { kind: 'builtin', builtin, root: filled.text, ...(showHidden && { showHidden }) }
}
