import { messageOf } from '../../api.ts'
import { capabilitiesOf } from '../../mcp/client-settings.ts'
import { copyText } from '../../parts/copy-button.tsx'
import { Menu } from '../../parts/menu.tsx'
import { toast } from '../../parts/toast.tsx'
import { session } from '../../session.ts'
import { clientSettings } from './connection.ts'
import { cliCommand } from './copy/cli-command.ts'
import type { CopiedRequest } from './copy/copied-request.ts'
import { curlCommand, jsonRpcText } from './copy/curl-command.ts'
import { sdkV1Code, sdkV2Code } from './copy/sdk-code.ts'

export interface CopyMenuProps {
  readonly request: () => Pick<CopiedRequest, 'url' | 'revision' | 'method' | 'params' | 'inputSchema'>
}

const FORMS: readonly { readonly label: string; readonly write: (request: CopiedRequest) => string }[] = [
  { label: 'curl', write: curlCommand },
  { label: 'dragoman command', write: cliCommand },
  { label: 'TypeScript, SDK v2', write: sdkV2Code },
  { label: 'TypeScript, SDK v1', write: sdkV1Code },
  { label: 'JSON-RPC', write: jsonRpcText },
]

/** Copies the request as a command or as code. */
export const CopyMenu = ({ request }: CopyMenuProps) => {
  const copy = (write: (request: CopiedRequest) => string, label: string): void => {
    const { needsToken = false, version = '0' } = session.peek() ?? {}
    const settings = clientSettings.peek()
    const client = { version, capabilities: capabilitiesOf(settings), logLevel: settings.logLevel }
    copyText(write({ ...request(), ...client, needsToken })).then(
      () => toast(`Copied as ${label}`, { kind: 'ok' }),
      (error: unknown) => toast(`Not copied: ${messageOf(error)}`, { kind: 'error' }),
    )
  }
  return (
    <Menu
      label="Copy the request as"
      icon="copy"
      text="Copy as"
      items={FORMS.map(({ label, write }) => ({ label, onSelect: () => copy(write, label) }))}
    />
  )
}
