import type { Exchange } from '../../protocol/exchange.ts'
import { TASKS_EXTENSION } from '../../protocol/meta.ts'
import { Json } from '../../wire/json/json.ts'

/** The exchange of a `server/discover` whose answer offers the tasks extension: the gateway makes tasks of long calls. */
export const offerTasks = (exchange: Exchange): Exchange => ({
  ...exchange,
  sink: frame =>
    exchange.sink(frame.kind === 'result' ? { kind: 'result', result: withExtension(frame.result) } : frame),
})

const withExtension = (discovered: Json): Json => {
  const capabilities = discovered.get('capabilities')
  if (!capabilities?.has('tools')) return discovered // only tool calls become tasks
  const extensions = capabilities.get('extensions') ?? Json.empty
  if (!extensions.isObject || extensions.has(TASKS_EXTENSION)) return discovered
  return discovered.with('capabilities', capabilities.with('extensions', extensions.with(TASKS_EXTENSION, {})))
}
