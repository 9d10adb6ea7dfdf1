import { META } from '../../protocol/meta.ts'
import { SERVED } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'

/** An InitializeResult as a modern server would say it in answer to `server/discover`; what we do not know stays. */
export const discovered = (introduction: Json): Json => {
  const serverInfo = introduction.get('serverInfo')
  const own = introduction.get('_meta')
  const meta = own?.isObject ? own : Json.empty
  return introduction
    .without('protocolVersion', 'serverInfo')
    .with('resultType', 'complete')
    .with('supportedVersions', SERVED)
    .with('ttlMs', 0)
    .with('cacheScope', 'private')
    .with('_meta', serverInfo ? meta.with(META.serverInfo, serverInfo) : meta)
}
