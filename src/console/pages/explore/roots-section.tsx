import { isModern } from '../../../protocol/revisions.ts'
import { messageOf } from '../../api.ts'
import { NOTICE } from '../../mcp/notices.ts'
import { Button } from '../../parts/button.tsx'
import { toast } from '../../parts/toast.tsx'
import type { ExploreConnection } from './connection.ts'
import { AddRootButton, RootsEditor } from './roots-editor.tsx'

/** The roots that this client has; servers of sessions are told that they have changed, and may ask for them. */
export const RootsSection = ({ client, revision, settings }: ExploreConnection) => {
  if (!settings.declared.includes('roots')) return null
  const announce = (): void => {
    client.notify(NOTICE.rootsChanged).then(
      () => toast('The server was told that the roots have changed', { kind: 'ok' }),
      (error: unknown) => toast(`Not told: ${messageOf(error)}`, { kind: 'error' }),
    )
  }
  return (
    <section aria-label="Roots">
      <h3>Roots</h3>
      <p class="explore-note">
        {isModern(revision)
          ? 'Sent when a call asks for them; this revision has no notification of changes.'
          : 'Sent when the server asks for them.'}
      </p>
      <RootsEditor />
      <div class="call-actions">
        <AddRootButton />
        {!isModern(revision) && <Button onClick={announce}>Announce the change</Button>}
      </div>
    </section>
  )
}
