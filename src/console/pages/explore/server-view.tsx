import { transportName } from '../../mcp/open-client.ts'
import { Badge, StateDot } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { JsonText } from '../../parts/json-text.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { Markdown } from '../../parts/markdown.tsx'
import { LogLines } from './call-view.tsx'
import { connection, isLive, serverLog } from './connection.ts'
import { Fold } from './item-head.tsx'
import { textMember } from './kinds.ts'
import { PingButton } from './ping-button.tsx'
import { RootsSection } from './roots-section.tsx'

/** What the target says about itself. */
export const ServerView = () => {
  const current = connection.value
  if (!current?.about)
    return current?.state === 'failed' ? (
      <Empty icon="warning" title="Not connected" text={current.error} />
    ) : (
      <Empty icon="explore" title="Connecting" text="The server has not answered yet." />
    )
  const { about, revision, target } = current
  const { serverInfo, capabilities, instructions, text } = about
  return (
    <div class="item-detail server-view">
      <header class="item-head">
        <p class="item-title">{textMember(serverInfo, 'title') ?? textMember(serverInfo, 'name') ?? target}</p>
        <p class="item-hints">
          {textMember(serverInfo, 'version') && <Badge>{textMember(serverInfo, 'version')}</Badge>}
          <Badge kind="accent">{revision}</Badge>
          <Badge>{transportName(revision)}</Badge>
          <StateDot
            state={isLive.value ? 'ok' : 'off'}
            label={isLive.value ? 'Changes arrive live' : 'No stream for changes'}
          />
        </p>
        {textMember(serverInfo, 'description') && <p>{textMember(serverInfo, 'description')}</p>}
        <PingButton key={`${target} ${revision}`} client={current.client} revision={revision} />
      </header>
      <section aria-label="Instructions">
        <h3>Instructions</h3>
        {instructions === undefined ? (
          <p class="explore-note">The server gives none.</p>
        ) : (
          <Markdown text={instructions} />
        )}
      </section>
      <section aria-label="Capabilities">
        <h3>Capabilities</h3>
        <JsonTree value={capabilities} openDepth={3} />
      </section>
      <RootsSection {...current} />
      <section aria-label="Log messages outside of calls">
        <h3>Log messages outside of calls</h3>
        <LogLines logs={serverLog.value} />
      </section>
      <Fold title="Message">
        <JsonText text={text} label="the message" />
      </Fold>
    </div>
  )
}
