import type { CreatedToken } from '../../../admin/api/tokens.ts'
import { Button } from '../../parts/button.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Dialog } from '../../parts/dialog.tsx'

/** Shows the secret of a new token, once. */
export const SecretDialog = ({
  created,
  onClose,
}: {
  readonly created: CreatedToken
  readonly onClose: () => void
}) => (
  <Dialog
    title={`Token ${created.token.name}`}
    onClose={onClose}
    footer={
      <>
        <CopyButton text={created.secret} label="Copy the token" shown="Copy" />
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </>
    }
  >
    <p>Copy it now: it is stored nowhere and will not be shown again.</p>
    <p class="connect-secret">
      <code>{created.secret}</code>
    </p>
    <p class="quiet">
      Clients send it as <code>Authorization: Bearer …</code>
    </p>
  </Dialog>
)
