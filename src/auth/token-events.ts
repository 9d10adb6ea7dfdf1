import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Token } from './token.ts'

type TokensByHash = ReadonlyMap<string, Token>

const about = ({
  id,
  name,
  principal,
  workspaces,
  policy,
  admin,
  expires,
}: Token): Readonly<Record<string, unknown>> => ({
  token: id,
  name,
  principal,
  workspaces,
  policy,
  admin,
  expires,
})

const missingIn = (tokens: TokensByHash, others: TokensByHash): Token[] =>
  [...tokens.values()].filter(({ hash }) => !others.has(hash))

/** Writes which tokens are accepted from now on, and which are no longer. Secrets and hashes are not written. */
export const writeTokenEvents = (before: TokensByHash, after: TokensByHash, write: WriteAuditEvent): void => {
  for (const token of missingIn(after, before)) write('token_created', about(token))
  for (const token of missingIn(before, after)) write('token_revoked', about(token))
}
