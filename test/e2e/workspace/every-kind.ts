import { describe, test } from 'vitest'
import { CLIENTS, serverOf } from '../../matrix/cells.ts'
import { amongMany, type Many } from './many.ts'

/** One client of each transport. */
export const KINDS = CLIENTS.filter(({ name }) =>
  ['2026-07-28 stateless', '2026-07-28 stdio', '2025-06-18 streamable', '2024-11-05 http-sse'].includes(name),
)

/** A modern server and two legacy ones, over three dialects. */
export const MEMBERS = {
  modern: serverOf('2026-07-28').start,
  legacy: serverOf('2025-06-18').start,
  oldest: serverOf('2024-11-05', 'http-sse').start,
}

type Rules = Parameters<typeof amongMany>[1]['rules']
type Body = (many: Many, client: ReturnType<Many['lateClient']>) => Promise<void>

/** Runs a body once for each kind of client, before the three servers. */
export const everyKind = (
  name: string,
  body: Body,
  { rules = {}, capabilities = {} }: { rules?: Rules; capabilities?: object } = {},
): void => {
  describe(name, () => {
    test.each(KINDS)('$name', kind =>
      amongMany(MEMBERS, { rules }, many => body(many, many.lateClient(kind, capabilities))),
    )
  })
}

/** A result of words. */
export const text = (words: string) => ({ content: [{ type: 'text', text: words }] })
