import { CopyButton } from '../../parts/copy-button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { SkeletonRows } from '../../parts/page-frame.tsx'
import { hrefTo } from '../../router.ts'

export const MemoryLoading = () => (
  <div class="memory-loading" role="status" aria-label="Loading">
    <SkeletonRows count={12} />
  </div>
)

export const MemoryFailure = ({ message }: { readonly message: string }) => (
  <Empty icon="warning" title="This could not be read" text={message} />
)

const CONFIGURATION = `"memory": { "builtin": "memory" }`

/** No server of the configuration is a memory. */
export const NoMemoryServer = () => (
  <Empty
    icon="memory"
    title="No memory server"
    text="The built-in memory gives agents a memory that outlasts a conversation. Add it to mcpServers in the configuration:"
    command={CONFIGURATION}
  >
    <a class="button button-primary" href={hrefTo('configuration')}>
      Open Configuration
    </a>
  </Empty>
)

/** The memory exists, but nothing was added to it. `url` is that of the tool over REST. */
export const NothingStored = ({ url }: { readonly url: string }) => {
  const curl = `curl -s ${url} -H 'Content-Type: application/json' -d '{"name":"Parking","episode_body":"Ann parked on Elm Street in May 2025."}'`
  return (
    <Empty
      icon="memory"
      title="Nothing is stored yet"
      text="Agents add memories with the tool add_memory: connect one and say “remember that …”. Or add one by hand, or import what another program knows."
    >
      <span class="memory-curl">
        <code>{curl}</code>
        <CopyButton text={curl} label="Copy the command" />
      </span>
    </Empty>
  )
}
