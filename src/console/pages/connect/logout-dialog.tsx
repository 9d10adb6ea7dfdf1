import { useState } from 'preact/hooks'
import type { EndedLogin, LoginList } from '../../../admin/api/logins.ts'
import { api, messageOf } from '../../api.ts'
import { Confirm } from '../../parts/dialog.tsx'
import { toast } from '../../parts/toast.tsx'
import { type LoginRow, ownerOf } from './login-rows.ts'

export interface LogoutDialogProps {
  readonly row: LoginRow
  readonly list: LoginList
  readonly onChanged: () => void
  readonly onClose: () => void
}

/** Asks before a login is ended. */
export const LogoutDialog = ({ row, list, onChanged, onClose }: LogoutDialogProps) => {
  const [isBusy, setBusy] = useState(false)
  const { server, login } = row
  const logOut = async (): Promise<void> => {
    setBusy(true)
    try {
      const body = { server: server.name, ...(login?.principal !== undefined && { principal: login.principal }) }
      const { isRevoked } = await api.post<EndedLogin>('admin/logins/end', body)
      const rest = isRevoked
        ? 'its tokens are revoked'
        : 'the authorization server did not confirm that it revoked the tokens'
      toast(`Logged out of ${server.name}: ${rest}`, { kind: isRevoked ? 'ok' : 'info' })
    } catch (error) {
      toast(messageOf(error), { kind: 'error' })
    }
    onChanged()
    onClose()
  }
  return (
    <Confirm
      title={`Log out of ${server.name}?`}
      action="Log out"
      isDanger
      isBusy={isBusy}
      onConfirm={() => void logOut()}
      onClose={onClose}
    >
      <p>
        The tokens of {ownerOf(row, list) ?? 'this login'} are revoked and forgotten. The tools of the server need a
        login again.
      </p>
    </Confirm>
  )
}
