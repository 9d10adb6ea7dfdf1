import { sizeOfTool } from '../../protocol/measure-tool.ts'
import { META } from '../../protocol/meta.ts'
import type { ToolSize } from '../../protocol/tool-size.ts'
import type { Json } from '../../wire/json/json.ts'

/** One tool of a workspace, before it gets the name that clients see. */
export interface NamedTool {
  readonly server: string
  readonly original: string
  readonly exposed: string
  readonly shown: Json // with its overlay
}

const BYTES_PER_TOKEN = 4 // of names
const ORIGIN = Buffer.byteLength(`,"_meta":{"${META.origin}":{"server":"","name":""}}`)

/** The size of a tool as a workspace lists it: a tool under another name carries its origin. */
export const sizeOfNamed = ({ server, original, exposed, shown }: NamedTool): ToolSize => {
  const size = sizeOfTool(shown)
  if (exposed === original) return size
  const added = ORIGIN + Buffer.byteLength(server) + Buffer.byteLength(exposed)
  return { bytes: size.bytes + added, tokens: size.tokens + Math.ceil(added / BYTES_PER_TOKEN) }
}
